//! Tests the contents of the package.

use assay::{Assay, Error, CONTRACT_FINGERPRINT, CONTRACT_VERSION};

#[test]
fn version_and_fingerprint_are_the_contracts() {
    assert_eq!(env!("CARGO_PKG_VERSION"), CONTRACT_VERSION);
    assert_eq!(CONTRACT_FINGERPRINT.len(), 64);
}

#[test]
fn the_package_has_the_licence() {
    let read = |file| std::fs::read_to_string(file).unwrap();
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/LICENSE");
    assert_eq!(read(ours), read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../LICENSE")));
    let list = ["package", "--list", "--allow-dirty", "--offline"];
    let packed = std::process::Command::new(env!("CARGO")).args(list).output().unwrap();
    assert!(String::from_utf8(packed.stdout).unwrap().lines().any(|file| file == "LICENSE"));
}

#[test]
fn without_a_key_nothing_is_sent() {
    std::env::remove_var("ASSAY_API_KEY");
    assert!(matches!(Assay::from_env(), Err(Error::Settings(text)) if text.contains("ASSAY_API_KEY")));
}

#[test]
fn a_base_url_needs_its_scheme() {
    let built = Assay::builder().base_url("127.0.0.1:8080").api_key("k").build();
    assert!(matches!(built, Err(Error::Settings(text)) if text.contains("is no base URL")));
}
