//! Results as CSV files and as Markdown tables.

use std::path::{Path, PathBuf};

use serde::Serialize;
use stereo_host::{Error, Result};

/// Writes `rows` as `folder/name.csv`, with a heading; returns the file.
///
/// # Errors
/// What the folder or the file refuses.
pub fn save_csv<R: Serialize>(folder: &Path, name: &str, rows: &[R]) -> Result<PathBuf> {
    let file = folder.join(name).with_extension("csv");
    let fail = |source| Error::File { path: file.clone(), action: "cannot write", source };
    std::fs::create_dir_all(folder).map_err(fail)?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(|error| fail(std::io::Error::other(error)))?;
    }
    let bytes = writer.into_inner().map_err(|error| fail(error.into_error()))?;
    stereo_host::io::save_text(&file, &String::from_utf8_lossy(&bytes))?;
    Ok(file)
}

/// A Markdown table; the first column is text, the others are numbers or short.
pub fn markdown(heading: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = &str>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let rule = std::iter::once("---").chain(std::iter::repeat_n("---:", heading.len().saturating_sub(1)));
    let mut table = line(&mut heading.iter().copied());
    table += &line(&mut rule.into_iter());
    for row in rows {
        table += &line(&mut row.iter().map(String::as_str));
    }
    table
}

/// `new` against `old` in per cent, with its sign.
pub fn delta(new: f64, old: f64) -> String {
    format!("{:+.1} %", 100.0 * (new / old - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        name: &'static str,
        ms: f64,
    }

    #[test]
    fn tables_and_files() {
        let table = markdown(&["kernel", "ms"], &[vec!["plain".to_owned(), "0.370".to_owned()]]);
        assert_eq!(table, "| kernel | ms |\n| --- | ---: |\n| plain | 0.370 |\n");
        assert_eq!((delta(0.5, 1.0), delta(1.029, 1.0)), ("-50.0 %".to_owned(), "+2.9 %".to_owned()));
        let dir = tempfile::tempdir().unwrap();
        let rows = [Row { name: "a, b", ms: 1.5 }];
        let file = save_csv(&dir.path().join("new"), "times", &rows).unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "name,ms\n\"a, b\",1.5\n");
    }
}
