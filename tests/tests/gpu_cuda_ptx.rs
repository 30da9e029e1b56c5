//! PTX of a folder on a real GPU: the same bytes as the embedded one where it is the same code, and a report that says
//! whose it is. Without a GPU every test says that it was skipped.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::fs;

use stereo_host::{Backend, DeviceCode, Matcher, Options, Params, PtxSource, SceneSpec};
use stereo_tests::gpu::{has_cuda, on};
use tempfile::TempDir;

/// The embedded PTX in files, every text changed by `change`.
fn folder(change: impl Fn(&str) -> String) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for image in PtxSource::Embedded.images().unwrap() {
        let file = folder.path().join(format!("stereo_sm{}.ptx", image.arch()));
        fs::write(file, change(image.text())).unwrap();
    }
    folder
}

fn embedded() -> Options {
    Options { ptx: PtxSource::Embedded, ..on(Backend::Cuda) }
}

fn code(matcher: &Matcher) -> DeviceCode {
    matcher.report().device_code.clone().unwrap()
}

#[test]
fn copies_of_the_embedded_ptx_give_its_bytes() {
    if !has_cuda("copies_of_the_embedded_ptx_give_its_bytes") {
        return;
    }
    let copies = folder(str::to_owned);
    let spec = SceneSpec { width: 333, height: 201, disparities: 64, ..SceneSpec::default() };
    let scene = spec.render().unwrap();
    let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
    for params in [Params { disparities: 64, ..Params::default() }, Params { disparities: 64, ..Params::masda() }] {
        let build = |options: &Options| Matcher::new(333, 201, &params, options).unwrap();
        let mut inside = build(&embedded());
        let mut outside = build(&embedded().with_ptx_folder(copies.path()));
        let expected = inside.compute(&left, &right).unwrap();
        assert!(expected.density() > 0.5, "there is something to compare");
        assert_eq!(outside.compute(&left, &right).unwrap(), expected, "{params:?}");

        let (inside, outside) = (code(&inside), code(&outside));
        assert_eq!(inside.source, PtxSource::Embedded);
        assert!(inside.compiler.as_ref().unwrap().starts_with("rustc "), "{inside}");
        assert_eq!(outside, DeviceCode { source: PtxSource::Folder(copies.path().to_owned()), ..inside });
    }
}

#[test]
fn matchers_of_one_process_run_their_own_ptx() {
    if !has_cuda("matchers_of_one_process_run_their_own_ptx") {
        return;
    }
    let stamp = |text: &str| text.lines().find(|line| line.starts_with("// compiler: ")).unwrap().to_owned();
    let stamped = folder(|text| text.replacen(&stamp(text), "// compiler: another one", 1));
    // No kernel of this name is left.
    let without_census = folder(|text| text.replace("census_7x7_u8", "census_0x0_u8"));
    let spec = SceneSpec { width: 160, height: 120, disparities: 32, ..SceneSpec::default() };
    let scene = spec.render().unwrap();
    let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
    let params = Params { disparities: 32, ..Params::default() };
    let build = |options: &Options| Matcher::new(160, 120, &params, options).unwrap();
    let mut inside = build(&embedded());
    let mut named = build(&embedded().with_ptx_folder(stamped.path()));
    let mut broken = build(&embedded().with_ptx_folder(without_census.path()));
    let expected = inside.compute(&left, &right).unwrap();
    for _ in 0..3 {
        let missing = broken.compute(&left, &right).unwrap_err().to_string();
        assert!(missing.contains("census_7x7_u8"), "{missing}");
        assert_eq!(named.compute(&left, &right).unwrap(), expected);
        assert_eq!(inside.compute(&left, &right).unwrap(), expected);
    }
    let (inside, named) = (code(&inside), code(&named));
    assert_eq!(named.compiler.as_deref(), Some("another one"));
    assert_eq!(named.source, PtxSource::Folder(stamped.path().to_owned()));
    assert_ne!(inside.compiler, named.compiler);
}
