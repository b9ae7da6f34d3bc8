//! Tests the helpers for files of images and recordings.

use assay::{audio_input, image_input, AudioInput, Error, ImageInput};

const IMAGES: [(&[u8], &str); 4] = [
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"RIFF....WEBPVP8 ", "image/webp"),
    (b"GIF89a", "image/gif"),
];
const RECORDINGS: [(&[u8], &str); 5] = [
    (b"RIFF....WAVEfmt ", "audio/wav"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"\xff\xfb\x90\x00", "audio/mpeg"),
];
/// AAC in ADTS begins like MP3, but its header names another layer.
const OTHERS: [&[u8]; 5] = [b"", b"<svg/>", b"\xff", b"\xff\xf1\x50\x80", b"....ftypM4A "];

/// Writes a file for one test and returns its path.
fn file(test: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("assay-{}-{test}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn files_are_sent_as_base64_with_the_type_of_their_first_bytes() {
    for (bytes, mime_type) in IMAGES {
        let ImageInput { r#type, mime_type: found, data, url } = image_input(file("sent", bytes)).unwrap();
        assert_eq!((r#type.as_str(), found.as_deref(), url), ("base64", Some(mime_type), None));
        assert!(!data.unwrap().is_empty());
    }
    for (bytes, mime_type) in RECORDINGS {
        let AudioInput { r#type, mime_type: found, .. } = audio_input(file("sent", bytes)).unwrap();
        assert_eq!((r#type.as_str(), found.as_deref()), ("base64", Some(mime_type)));
    }
    assert_eq!(image_input(file("sent", b"GIF89a")).unwrap().data.as_deref(), Some("R0lGODlh"));
    assert_eq!(audio_input(file("sent", b"fLaC")).unwrap().data.as_deref(), Some("ZkxhQw=="));
}

#[test]
fn other_formats_are_refused_before_they_are_sent() {
    let recordings = RECORDINGS.iter().map(|(bytes, _)| *bytes);
    for bytes in OTHERS.into_iter().chain(recordings) {
        assert!(matches!(image_input(file("other", bytes)), Err(Error::Media(text)) if text.contains("JPEG")));
    }
    let images = IMAGES.iter().map(|(bytes, _)| *bytes);
    for bytes in OTHERS.into_iter().chain(images) {
        assert!(matches!(audio_input(file("other", bytes)), Err(Error::Media(text)) if text.contains("WAV")));
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    assert!(matches!(image_input("/no/such.png"), Err(Error::Media(text)) if text.contains("/no/such.png")));
}
