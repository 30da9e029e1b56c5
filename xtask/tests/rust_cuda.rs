//! `cargo xtask build-ptx --codegen rust-cuda` with stand-ins for rustup, rustc, cargo, LLVM and CUDA: arguments,
//! environment and error texts. The stand-in for cargo writes down how it was called and leaves PTX behind.
#![cfg(unix)]

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const HOST: &str = "x86_64-unknown-linux-gnu";

/// What `cuda_std` makes libNVVM write, cut down.
const PTX: &str = "//\n// Cuda compilation tools, release 13.0, V13.0.88\n//\n.version 9.0\n.target sm_100\n\
                   .extern .shared .align 16 .b8 _Zcuda_std_dyn_shared[16];\n.visible .entry census()\n{\nret;\n}\n";

/// A folder with everything that the chore looks for.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        let root = machine.path("");
        let root = root.display();
        machine.script(
            "bin/rustup",
            &format!("[ \"$1 $2 $3\" = 'which rustc --toolchain' ] && echo {root}/toolchain/bin/rustc && echo \"$4\" > {root}/channel"),
        );
        machine.script(
            "toolchain/bin/rustc",
            &format!(
                "case \"$*\" in\n--version) echo 'rustc 1.96.0-nightly (stand-in)';;\n-vV) echo 'host: {HOST}';;\n\
                 '--print sysroot') echo {root}/toolchain;;\n*) exit 1;;\nesac"
            ),
        );
        machine.file(&format!("toolchain/lib/rustlib/{HOST}/lib/librustc_driver-0123.so"));
        machine.file("toolchain/lib/rustlib/src/rust/library/core/Cargo.toml");
        machine.script("bin/llvm-config", "case $1 in\n--version) echo 7.1.0;;\n--shared-mode) echo static;;\nesac");
        machine
            .script("bin/llvm-config-19", "case $1 in\n--version) echo 19.1.7;;\n--shared-mode) echo shared;;\nesac");
        for file in [
            "include/cuda.h",
            "include/cuda_runtime_api.h",
            "nvvm/include/nvvm.h",
            "nvvm/lib64/libnvvm.so",
            "nvvm/libdevice/libdevice.10.bc",
        ] {
            machine.file(&format!("cuda/{file}"));
        }
        machine.file("clang/libclang-19.so.1");
        // All that the stand-ins themselves use; nothing else of this machine is to be found.
        for tool in ["cp", "env", "mkdir"] {
            let folder = ["/usr/bin", "/bin"].map(Path::new).into_iter().find(|folder| folder.join(tool).exists());
            std::os::unix::fs::symlink(folder.unwrap().join(tool), machine.path("bin").join(tool)).unwrap();
        }
        fs::write(machine.path("module.ptx"), PTX).unwrap();
        // Its last argument is the file to write.
        machine.script(
            "bin/cargo",
            &format!(
                "{{ pwd; echo \"$*\"; env; echo; }} >> {root}/calls\n\
                 for file; do :; done\n\
                 cp {root}/module.ptx \"$file\"\n\
                 mkdir -p \"$CARGO_TARGET_DIR/nvptx64-nvidia-cuda/release\"\n\
                 echo \"x.ptx: $PWD/kernels/../../src/lib.rs {root}/module.ptx\" > \"$CARGO_TARGET_DIR/nvptx64-nvidia-cuda/release/stereo_kernels.d\""
            ),
        );
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn file(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        self.file(name);
        fs::write(self.path(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .args(["build-ptx", "--codegen", "rust-cuda", "--out"])
            .arg(self.path("out"))
            .args(arguments)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("CUDA_PATH", self.path("cuda"))
            .env("LIBCLANG_PATH", self.path("clang"))
            // Named, as this machine may have its own of that name.
            .env("LLVM_CONFIG", self.path("bin/llvm-config"))
            .env("LLVM_CONFIG_19", self.path("bin/llvm-config-19"))
            .env("CARGO_TARGET_DIR", self.path("target"))
            // As `cargo xtask` leaves them.
            .env("RUSTUP_TOOLCHAIN", "nightly")
            .env("CARGO", "/no/such/cargo")
            .env("RUSTFLAGS", "-Cdebuginfo=2");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = text(&output);
        assert!(output.status.success(), "{text}");
        text
    }

    /// The text of a run that must fail before it builds or writes anything.
    fn refuse(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(!self.path("calls").exists(), "cargo was started");
        assert!(!self.path("out").exists(), "a folder was made");
        text(&output)
    }

    fn calls(&self) -> Vec<Call> {
        let text = fs::read_to_string(self.path("calls")).unwrap();
        text.split("\n\n").filter(|call| !call.trim().is_empty()).map(Call::read).collect()
    }

    fn written(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path("out"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// How the stand-in for cargo was called.
struct Call {
    folder: String,
    arguments: String,
    environment: HashMap<String, String>,
}

impl Call {
    fn read(text: &str) -> Self {
        let mut lines = text.trim().lines();
        let (folder, arguments) = (lines.next().unwrap().to_owned(), lines.next().unwrap().to_owned());
        let pairs = lines.filter_map(|line| line.split_once('='));
        Self { folder, arguments, environment: pairs.map(|(name, value)| (name.into(), value.into())).collect() }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }
}

fn same(value: Option<&str>, path: &Path) {
    assert_eq!(value.map(Path::new), Some(path));
}

#[test]
fn blackwell_is_built_over_llvm_19() {
    let machine = Machine::new();
    let said = machine.succeed(&["--arch", "100,120"]);
    assert!(said.contains("STEREO_PTX_DIR="), "{said}");
    assert_eq!(machine.written(), ["stereo_sm100.ptx", "stereo_sm120.ptx"]);
    let calls = machine.calls();
    assert_eq!(calls.len(), 2);
    for (call, architecture) in calls.iter().zip(["compute_100", "compute_120"]) {
        assert!(call.folder.ends_with("stereo-kernels/rust-cuda"), "{}", call.folder);
        let start = "run --package builder --features llvm19 -- ";
        assert!(call.arguments.starts_with(start), "{}", call.arguments);
        assert!(call.arguments.contains(&format!("rust-cuda/kernels {architecture} ")), "{}", call.arguments);
        same(call.variable("CARGO_TARGET_DIR"), &machine.path("target/rust-cuda/llvm19"));
        same(call.variable("CUDA_PATH"), &machine.path("cuda"));
        same(call.variable("LLVM_CONFIG_19"), &machine.path("bin/llvm-config-19"));
        same(call.variable("LIBCLANG_PATH"), &machine.path("clang"));
        same(call.variable("LD_LIBRARY_PATH"), &machine.path("cuda/nvvm/lib64"));
        assert_eq!(call.variable("LLVM_LINK_SHARED"), Some("1"));
        for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTFLAGS", "RUSTC_BOOTSTRAP"] {
            assert_eq!(call.variable(variable), None, "the folder's toolchain file decides");
        }
    }
    let channel = fs::read_to_string(machine.path("channel")).unwrap();
    let pinned = include_str!("../../stereo-kernels/rust-cuda/rust-toolchain.toml");
    assert!(pinned.contains(&format!("\"{}\"", channel.trim())), "{channel}");
}

#[test]
fn the_ptx_is_stamped_and_its_shared_memory_aligned() {
    let machine = Machine::new();
    machine.succeed(&["--arch", "100"]);
    let ptx = fs::read_to_string(machine.path("out/stereo_sm100.ptx")).unwrap();
    let compiler = ptx.lines().find(|line| line.starts_with("// compiler: ")).unwrap();
    for part in ["rust-cuda ", "libNVVM 13.0.88", "rustc 1.96.0-nightly (stand-in)", "LLVM 19.1.7"] {
        assert!(compiler.contains(part), "{compiler}");
    }
    assert!(ptx.contains("// flags: compute_100\n"), "{ptx}");
    let sources: Vec<_> = ptx.lines().filter(|line| line.starts_with("// source: ")).collect();
    assert!(sources.len() == 1 && sources[0].ends_with(" stereo-kernels/src/lib.rs"), "{sources:?}");
    assert!(ptx.contains("\n.extern .shared .align 128 .b8 _Zcuda_std_dyn_shared[];\n"), "{ptx}");
}

#[test]
fn hopper_and_earlier_are_built_over_llvm_7() {
    let machine = Machine::new();
    machine.succeed(&["--arch", "90"]);
    let call = machine.calls().remove(0);
    assert!(call.arguments.starts_with("run --package builder -- "), "{}", call.arguments);
    assert!(call.arguments.contains(" compute_90 "), "{}", call.arguments);
    same(call.variable("CARGO_TARGET_DIR"), &machine.path("target/rust-cuda/llvm7"));
    same(call.variable("LLVM_CONFIG"), &machine.path("bin/llvm-config"));
    assert_eq!(call.variable("LLVM_LINK_SHARED"), None);
}

#[test]
fn without_a_choice_everything_that_the_llvm_here_serves_is_built() {
    let machine = Machine::new();
    machine.succeed(&[]);
    let all = [100, 120, 75, 80, 90].map(|arch| format!("stereo_sm{arch}.ptx"));
    assert_eq!(machine.written(), all);

    let machine = Machine::new();
    machine.remove("bin/llvm-config");
    let said = machine.succeed(&[]);
    assert!(said.contains("left out: sm_75, sm_80, sm_90, for want of LLVM 7"), "{said}");
    assert_eq!(machine.written(), all[..2]);
}

#[test]
fn a_compiler_can_be_named() {
    let machine = Machine::new();
    machine.remove("bin/rustup");
    let rustc = machine.path("toolchain/bin/rustc");
    machine.succeed(&["--arch", "100", "--rustc", rustc.to_str().unwrap()]);
    let call = machine.calls().remove(0);
    same(call.variable("RUSTC"), &rustc);
    assert!(Path::new(call.variable("PATH").unwrap().split(':').next().unwrap()) == rustc.parent().unwrap());
    assert_eq!(call.variable("RUSTC_BOOTSTRAP"), Some("1"));
}

#[test]
fn each_missing_thing_is_named_with_how_to_get_it() {
    let driver = format!("toolchain/lib/rustlib/{HOST}/lib/librustc_driver-0123.so");
    let cases: [(&str, &str, &[&str]); 8] = [
        (
            "bin/rustup",
            "100",
            &["Rust nightly-", "cannot start rustup", "rustup toolchain install nightly-", "rustc-dev"],
        ),
        (&driver, "100", &["component rustc-dev", "rustup toolchain install nightly-"]),
        ("toolchain/lib/rustlib/src/rust/library/core/Cargo.toml", "100", &["component rust-src"]),
        ("bin/llvm-config-19", "100", &["LLVM 19 not found", "llvm-19-dev", "LLVM_CONFIG_19=PATH", "--arch 75,80,90"]),
        ("bin/llvm-config", "90", &["LLVM 7 not found", "LLVM 7.1", "LLVM_CONFIG=PATH", "--arch 100,120"]),
        ("cuda/nvvm/lib64/libnvvm.so", "100", &["CUDA_PATH: there is no ", "nvvm/lib64/libnvvm.so", "nvidia-nvvm"]),
        ("cuda/include/cuda.h", "100", &["CUDA_PATH: there is no ", "include/cuda.h"]),
        ("clang/libclang-19.so.1", "100", &["libclang not found", "LIBCLANG_PATH: there is none in", "libclang-dev"]),
    ];
    for (file, arch, parts) in cases {
        let machine = Machine::new();
        machine.remove(file);
        let said = machine.refuse(&["--arch", arch]);
        for part in parts {
            assert!(said.contains(part), "{file}: no `{part}` in\n{said}");
        }
    }
}

#[test]
fn all_that_is_missing_is_said_at_once() {
    let machine = Machine::new();
    for file in ["bin/rustup", "bin/llvm-config", "bin/llvm-config-19", "clang/libclang-19.so.1"] {
        machine.remove(file);
    }
    for arguments in [&["--arch", "90,100"][..], &[]] {
        let said = machine.refuse(arguments);
        for part in ["Rust nightly-", "LLVM 7 not found", "LLVM 19 not found", "libclang not found"] {
            assert!(said.contains(part), "no `{part}` in\n{said}");
        }
    }
}

#[test]
fn another_llvm_is_refused_by_its_version() {
    let machine = Machine::new();
    machine.script("bin/llvm-config-19", "echo 14.0.6");
    let said = machine.refuse(&["--arch", "100"]);
    assert!(said.contains("is version 14.0.6") && said.contains("LLVM 19 not found"), "{said}");
}

#[test]
fn a_failed_build_leaves_nothing() {
    let machine = Machine::new();
    machine.script("bin/cargo", "echo 'error: no such intrinsic' >&2; exit 101");
    let output = machine.run(&["--arch", "100"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no such intrinsic") && said.contains("101"), "{said}");
    assert!(machine.written().is_empty());
}

#[test]
fn ptx_of_another_kind_is_refused() {
    let machine = Machine::new();
    fs::write(machine.path("module.ptx"), PTX.replace("_Zcuda_std_dyn_shared[16]", "other[16]")).unwrap();
    let output = machine.run(&["--arch", "100"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("_Zcuda_std_dyn_shared"), "{}", text(&output));
    assert!(machine.written().is_empty());
}

#[test]
fn arguments_that_do_not_go_together_are_refused() {
    let xtask = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap();
    let check = xtask(&["build-ptx", "--codegen", "rust-cuda", "--check"]);
    assert!(!check.status.success() && text(&check).contains("none of rust-cuda's are committed"), "{}", text(&check));
    let desk = xtask(&["build-ptx", "--arch", "120"]);
    assert!(!desk.status.success() && text(&desk).contains("no PTX for sm_120 is committed"), "{}", text(&desk));
    let unknown = xtask(&["build-ptx", "--codegen", "gcc"]);
    assert!(!unknown.status.success() && text(&unknown).contains("rust-cuda"), "{}", text(&unknown));
}
