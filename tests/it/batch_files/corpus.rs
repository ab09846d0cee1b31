//! The files. Recipients are British numbers kept for drama.

mod objects;
mod tables;
mod texts;
mod values;

use super::{AwkwardFile, Expected};

/// Every file.
pub fn corpus() -> Vec<AwkwardFile> {
    [
        texts::plain(),
        tables::separators(),
        texts::encodings(),
        texts::other_kinds(),
        tables::headers(),
        tables::quotes(),
        tables::ragged(),
        values::numbers(),
        values::contents(),
        values::duplicates(),
        tables::sizes(),
        objects::json(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn file(name: &'static str, bytes: impl AsRef<[u8]>, expected: Expected) -> AwkwardFile {
    AwkwardFile {
        name,
        bytes: bytes.as_ref().to_vec(),
        default_body: None,
        expected,
    }
}

fn refused(name: &'static str, bytes: impl AsRef<[u8]>, part: &'static str) -> AwkwardFile {
    file(name, bytes, Expected::Refused(part))
}

/// A file whose rows are as expected: lines of jobs, and lines and fields of rejected rows.
fn rows(
    name: &'static str,
    bytes: impl AsRef<[u8]>,
    jobs: &[u64],
    rejected: &[(u64, &'static str)],
) -> AwkwardFile {
    let expected = Expected::Rows {
        jobs: jobs.to_vec(),
        duplicates: Vec::new(),
        rejected: rejected.to_vec(),
    };
    file(name, bytes, expected)
}

fn one_column(mut file: AwkwardFile) -> AwkwardFile {
    file.default_body = Some("Hallo");
    file
}
