//! The layer against the made-up driver of `fake_driver.c`, and the jump table against `cust_raw`.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use stereo_host::{
    Backend, GrayView, Matcher, Options, Params, Plan, PtxSource, Tuning,
    cuda::{CudaContext, device, driver},
};
use tempfile::TempDir;

use crate::skipped;

/// Compiles the made-up driver; `None` after a line that says why `test` could not run.
fn fake_driver(test: &str) -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("fake_driver.c");
    fs::write(&source, include_str!("fake_driver.c")).unwrap();
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-shared", "-fPIC", "-O1", "-o"])
        .arg(folder.path().join("libcuda.so.1"))
        .arg(&source)
        .output();
    match compiled {
        Ok(output) if output.status.success() => Some(folder),
        Ok(output) => panic!("cc: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            skipped(test, format!("no C compiler (cc: {error})"));
            None
        }
    }
}

/// Runs tests of this program with the driver in `library`; stdout, or a panic when one fails.
fn run_again(library: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(arguments).args(["--nocapture"]);
    command.env("LD_LIBRARY_PATH", library).env_remove("STEREO_PTX_DIR").env_remove("CUDA_VISIBLE_DEVICES");
    let output = command.envs(settings.iter().copied()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {stdout}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    stdout
}

#[test]
#[ignore = "prints what this machine says about CUDA; run by the tests below"]
fn report_availability() {
    let ordinal = env::var("REPORT_DEVICE").ok().map(|number| number.parse().unwrap());
    match device::availability(ordinal) {
        Ok(()) => println!("report: available, {:?}", CudaContext::new(ordinal).unwrap()),
        Err(error) => println!("report: {error}"),
    }
}

fn report(library: &Path, settings: &[(&str, &str)]) -> String {
    let stdout = run_again(library, &["--exact", "fake::report_availability", "--ignored"], settings);
    stdout.lines().find_map(|line| line.split_once("report: ")).expect("the report's line").1.to_owned()
}

#[test]
fn fake_driver_runs_the_gpu_tests() {
    let Some(library) = fake_driver("fake_driver_runs_the_gpu_tests") else { return };
    let stdout = run_again(library.path(), &["smoke::cuda_"], &[("STEREO_REQUIRE_CUDA", "1")]);
    let passed = stdout.lines().filter(|line| line.starts_with("test smoke::cuda_")).count();
    assert!(passed >= 10, "only {passed} tests ran:\n{stdout}");
}

#[test]
fn fake_driver_is_left_as_it_was_found() {
    let Some(library) = fake_driver("fake_driver_is_left_as_it_was_found") else { return };
    run_again(library.path(), &["--exact", "fake::leaves_nothing_behind", "--ignored"], &[]);
}

#[test]
#[ignore = "needs the made-up driver; run by the test above"]
fn leaves_nothing_behind() {
    // SAFETY: the made-up driver exports both as functions without parameters.
    let (live, depth) = unsafe {
        (
            std::mem::transmute::<*mut std::ffi::c_void, extern "C" fn() -> std::ffi::c_long>(
                driver::symbol(c"fake_live").expect("the made-up driver").as_ptr(),
            ),
            std::mem::transmute::<*mut std::ffi::c_void, extern "C" fn() -> std::ffi::c_int>(
                driver::symbol(c"fake_depth").expect("the made-up driver").as_ptr(),
            ),
        )
    };
    crate::smoke::use_everything_once();
    assert_eq!(depth(), 0, "contexts are popped as often as they are pushed");
    assert_eq!(live(), 1, "all that is left is the module, kept for the next matcher");
}

#[test]
fn fake_driver_reasons_for_unavailability() {
    let Some(library) = fake_driver("fake_driver_reasons_for_unavailability") else { return };
    let ptx = tempfile::tempdir().unwrap();
    for (arch, version) in [(75, "8.6"), (90, "8.8")] {
        let text = format!(".version {version}\n.target sm_{arch}\n.address_size 64\n");
        fs::write(ptx.path().join(format!("stereo_sm{arch}.ptx")), text).unwrap();
    }
    let folder = ("STEREO_PTX_DIR", ptx.path().to_str().unwrap());
    let unavailable = |reason: &str| format!("backend cuda is not available here: {reason}");
    let text = |settings: &[(&str, &str)]| report(library.path(), &[&[folder], settings].concat());

    assert!(text(&[]).starts_with("available, CudaContext(0: Fake GPU 0 (compute capability 7.5))"));
    assert_eq!(
        text(&[("FAKE_VERSION", "12040")]),
        unavailable(&format!(
            "the NVIDIA driver is too old: it supports CUDA 12.4, the GPU code needs CUDA 12.7; update the driver; \
             STEREO_PTX_DIR = {} holds sm_75 (CUDA 12.7), sm_90 (CUDA 12.9)",
            ptx.path().display()
        ))
    );
    let embedded = report(library.path(), &[("FAKE_VERSION", "9020")]);
    assert!(embedded.ends_with("update the driver"), "{embedded}");
    assert!(text(&[("FAKE_VERSION", "12070"), ("FAKE_CAPABILITY", "90")]).starts_with("available"));
    assert_eq!(
        text(&[("FAKE_CAPABILITY", "70")]),
        unavailable("GPU 0, Fake GPU 0 (compute capability 7.0), is too old: at least 7.5 is needed")
    );
    let none = unavailable("the NVIDIA driver (CUDA 12.8) finds no GPU");
    assert_eq!(text(&[("FAKE_INIT", "100")]), none);
    assert_eq!(text(&[("FAKE_DEVICES", "0")]), none);
    assert_eq!(
        text(&[("FAKE_INIT", "803")]),
        unavailable("the NVIDIA driver (CUDA 12.8) does not start: CUDA_ERROR_OTHER (803): in the fake driver's words")
    );
    // A code that cust has never heard of.
    assert!(text(&[("FAKE_INIT", "1234")]).contains("does not start: unknown CUDA error (1234)"));
    assert_eq!(
        text(&[("REPORT_DEVICE", "2"), ("FAKE_DEVICES", "2")]),
        "device = 2 is not allowed: 0 = Fake GPU 0 (compute capability 7.5), 1 = Fake GPU 1 (compute capability 7.5)"
    );
    assert!(text(&[("REPORT_DEVICE", "1"), ("FAKE_DEVICES", "2")]).contains("Fake GPU 1"));
    let missing = text(&[("STEREO_PTX_DIR", "no/such/folder")]);
    assert!(missing.contains("no/such/folder: cannot read the folder that STEREO_PTX_DIR names: "), "{missing}");
}

#[test]
fn fake_driver_matchers_run_their_own_ptx() {
    let Some(library) = fake_driver("fake_driver_matchers_run_their_own_ptx") else { return };
    // What the options name counts, not this.
    let settings = [("STEREO_PTX_DIR", "no/such/folder")];
    run_again(library.path(), &["--exact", "fake::matchers_run_their_own_ptx", "--ignored"], &settings);
}

#[test]
#[ignore = "needs the made-up driver, whose kernels do nothing; run by the test above"]
fn matchers_run_their_own_ptx() {
    let (other, bare) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let embedded = &PtxSource::Embedded.images().unwrap()[0];
    let stamp = embedded.compiler().unwrap();
    fs::write(other.path().join("stereo_sm75.ptx"), embedded.text().replacen(stamp, "another compiler", 1)).unwrap();
    fs::write(bare.path().join("stereo_sm75.ptx"), ".version 6.3\n.target sm_75\n.address_size 64\n").unwrap();

    let pixels = vec![7; 40 * 24];
    let view = GrayView::from_u8(&pixels, 40, 24).unwrap();
    for params in [Params { disparities: 16, ..Params::default() }, Params { disparities: 16, ..Params::masda() }] {
        let options = Options { backend: Backend::Cuda, tuning: Tuning::Fixed(Plan::PLAIN), ..Options::default() };
        let build = |options: &Options| Matcher::new(40, 24, &params, options).unwrap();
        let mut first = build(&Options { ptx: PtxSource::Embedded, ..options.clone() });
        let mut second = build(&options.clone().with_ptx_folder(other.path()));
        let mut third = build(&options.clone().with_ptx_folder(bare.path()));
        for _ in 0..2 {
            first.compute(&view, &view).unwrap();
            second.compute(&view, &view).unwrap();
            let missing = third.compute(&view, &view).unwrap_err().to_string();
            assert!(missing.contains("cuModuleGetFunction") && missing.contains("kernel `"), "{missing}");
        }
        let code = |matcher: &Matcher| matcher.report().device_code.clone().unwrap();
        let (one, two, three) = (code(&first), code(&second), code(&third));
        assert_eq!((one.source, one.compiler.as_deref()), (PtxSource::Embedded, Some(stamp)));
        let folder = |folder: &TempDir| PtxSource::Folder(folder.path().to_owned());
        assert_eq!((two.source, two.compiler.as_deref()), (folder(&other), Some("another compiler")));
        assert_eq!((three.source, three.compiler, three.isa), (folder(&bare), None, (6, 3)));

        // The environment's folder does not exist.
        let refused = |options: &Options| Matcher::new(40, 24, &params, options).err().unwrap().to_string();
        let text = refused(&options);
        assert!(text.contains("cannot read the folder that STEREO_PTX_DIR names"), "{text}");
        let text = refused(&options.with_ptx_folder("not/here"));
        assert!(text.contains("not/here: cannot read the given PTX folder"), "{text}");
    }
}

#[test]
fn without_a_driver_the_reason_names_the_library() {
    let Err(reason) = driver::load() else {
        skipped("without_a_driver_the_reason_names_the_library", "there is a driver");
        return;
    };
    assert!(reason.contains("libcuda.so.1"), "{reason}");
    let error = device::availability(None).unwrap_err().to_string();
    assert!(error.starts_with("backend cuda is not available here: no NVIDIA driver is installed (libcuda"), "{error}");
    assert_eq!(CudaContext::new(None).unwrap_err().to_string(), error);
}

/// The source of the very `cust_raw` that is linked; `None` when cargo cannot tell (no sources at hand).
fn cust_raw_source() -> Option<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(manifest)
        .output()
        .ok()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let package = metadata["packages"].as_array()?.iter().find(|package| package["name"] == "cust_raw")?;
    Some(Path::new(package["manifest_path"].as_str()?).with_file_name("src").join("cuda.rs"))
}

#[test]
fn every_symbol_that_cust_declares_is_defined() {
    let Some(source) = cust_raw_source().and_then(|path| fs::read_to_string(path).ok()) else {
        skipped("every_symbol_that_cust_declares_is_defined", "no source of cust_raw");
        return;
    };
    let declared: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("pub fn "))
        .filter_map(|rest| rest.split_once('(').map(|(name, _)| name))
        .filter(|name| name.starts_with("cu"))
        .collect();
    let defined: BTreeSet<&str> = driver::defined_symbols().collect();
    assert!(declared.len() > 300, "{}", declared.len());
    assert_eq!(declared, defined);
}

#[test]
fn this_program_neither_needs_libcuda_nor_replaces_it() {
    let readelf = |option| {
        let output = Command::new("readelf").args(["--wide", option]).arg(env::current_exe().unwrap()).output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let (Some(dynamic), Some(symbols)) = (readelf("--dynamic"), readelf("--symbols")) else {
        skipped("this_program_neither_needs_libcuda_nor_replaces_it", "no readelf");
        return;
    };
    assert!(dynamic.contains("libc.so"), "{dynamic}");
    assert!(!dynamic.contains("libcuda"), "{dynamic}");
    // A stripped program has no symbols to look at.
    for symbol in symbols.lines().filter(|line| line.ends_with(" cuInit") || line.ends_with(" cuMemAlloc_v2")) {
        assert!(symbol.contains(" HIDDEN "), "{symbol}");
    }
}
