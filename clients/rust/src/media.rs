//! Helpers that turn files of images and recordings into inputs of a request.

use std::path::Path;

use base64::prelude::{Engine, BASE64_STANDARD};

use crate::error::Error;
use crate::models::{AudioInput, ImageInput};

/// A media type, the first bytes of its files, and where they are.
type Signature = (&'static str, &'static [u8], usize);

/// The formats that the server reads.
const IMAGES: [Signature; 4] = [
    ("image/jpeg", b"\xff\xd8\xff", 0),
    ("image/png", b"\x89PNG\r\n\x1a\n", 0),
    ("image/webp", b"WEBP", 8),
    ("image/gif", b"GIF8", 0),
];
const RECORDINGS: [Signature; 4] = [
    ("audio/wav", b"WAVE", 8),
    ("audio/flac", b"fLaC", 0),
    ("audio/ogg", b"OggS", 0),
    ("audio/mpeg", b"ID3", 0),
];

/// Reads an image file. Fails with [`Error::Media`] if it cannot be read, or is in a format that the server does not
/// read.
///
/// ```no_run
/// use assay::{image_input, Assay, DecideRequest};
///
/// let request = DecideRequest {
///     context: Some(String::new()),
///     images: Some(vec![image_input("receipt.jpg")?]),
///     ..DecideRequest::new("org/model".into(), "Is this a receipt?".into())
/// };
/// println!("{:?}", Assay::from_env()?.decide(&request)?.value);
/// # Ok::<(), assay::Error>(())
/// ```
pub fn image_input(path: impl AsRef<Path>) -> Result<ImageInput, Error> {
    let (mime_type, data) = read(path.as_ref(), |bytes| type_of(bytes, &IMAGES), "JPEG, PNG, WebP or GIF")?;
    Ok(ImageInput { mime_type: Some(mime_type), data: Some(data), ..ImageInput::new("base64".into()) })
}

/// Reads a recording. Fails with [`Error::Media`] if it cannot be read, or is in a format that the server does not
/// read.
///
/// ```no_run
/// use assay::{audio_input, Assay, DecideRequest};
///
/// let request = DecideRequest {
///     context: Some(String::new()),
///     audio: Some(vec![audio_input("call.mp3")?]),
///     ..DecideRequest::new("org/model".into(), "Is the caller angry?".into())
/// };
/// println!("{:?}", Assay::from_env()?.decide(&request)?.value);
/// # Ok::<(), assay::Error>(())
/// ```
pub fn audio_input(path: impl AsRef<Path>) -> Result<AudioInput, Error> {
    let recording = |bytes: &[u8]| type_of(bytes, &RECORDINGS).or(is_mp3_frame(bytes).then_some("audio/mpeg"));
    let (mime_type, data) = read(path.as_ref(), recording, "WAV, MP3, FLAC or Ogg")?;
    Ok(AudioInput { mime_type: Some(mime_type), data: Some(data), ..AudioInput::new("base64".into()) })
}

/// Returns the media type of a file, and its bytes as base64.
fn read(
    path: &Path,
    type_of: impl Fn(&[u8]) -> Option<&'static str>,
    formats: &str,
) -> Result<(String, String), Error> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|why| Error::Media(format!("{name} cannot be read: {why}.")))?;
    match type_of(&bytes) {
        Some(mime_type) => Ok((mime_type.into(), BASE64_STANDARD.encode(bytes))),
        None => Err(Error::Media(format!("{name} is not in a format that Assay reads. Send {formats}."))),
    }
}

fn type_of(bytes: &[u8], signatures: &[Signature]) -> Option<&'static str> {
    let matches = |(_, start, at): &&Signature| bytes.get(*at..).is_some_and(|rest| rest.starts_with(start));
    signatures.iter().find(matches).map(|(mime_type, ..)| *mime_type)
}

/// Tells whether bytes begin with the frame header of MPEG layer III (MP3). AAC has a similar header with another
/// layer.
fn is_mp3_frame(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, second, ..] if second & 0xe6 == 0xe2)
}
