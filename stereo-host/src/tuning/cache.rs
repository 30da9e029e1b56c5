//! The plans measured before. Every choice is a file of its own, named by a digest of its key: a
//! program that stores one touches no other, so that any number of them may run at a time, and a
//! damaged file costs one measurement.

use std::{
    collections::HashMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};

use super::TuningKey;
use crate::{Error, Plan, Result, io};

/// The environment variable that names another folder.
const FOLDER_VARIABLE: &str = "STEREO_CACHE_DIR";

/// What the files' names begin and end with.
const FILE_PREFIX: &str = "plan-";
const FILE_SUFFIX: &str = ".json";

/// No choice needs as many bytes: a longer file is not one.
const MAX_FILE_BYTES: u64 = 1 << 16;

/// A stored choice.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    key: TuningKey,
    plan: Plan,
}

/// What this process has measured: it holds where nothing can be stored, too.
static MEASURED: LazyLock<Mutex<HashMap<TuningKey, Plan>>> = LazyLock::new(Mutex::default);

/// The plan for `key`, measured by this process or stored in the user's folder.
pub(crate) fn find(key: &TuningKey) -> Option<Plan> {
    let measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
    measured.or_else(|| Cache::from_env()?.read(key))
}

/// Remembers a choice; returns its file, or says by a warning why there is none.
pub(crate) fn store(key: &TuningKey, plan: Plan) -> Option<PathBuf> {
    MEASURED.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), plan);
    let Some(cache) = Cache::from_env() else {
        tracing::warn!(
            "there is no cache folder: the plan is measured anew by every program; {FOLDER_VARIABLE} names one"
        );
        return None;
    };
    match cache.write(key, plan) {
        Ok(file) => Some(file),
        Err(error) => {
            tracing::warn!("the plan is measured anew by every program: {error}");
            None
        }
    }
}

/// A folder of choices.
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The folder that the environment or the system names.
    pub(crate) fn from_env() -> Option<Self> {
        let named = std::env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let usual = || etcetera::choose_base_strategy().ok().map(|system| system.cache_dir().join("stereo"));
        named.or_else(usual).map(|folder| Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, key: &TuningKey) -> PathBuf {
        // Another digest in another version of the standard library costs a measurement, no more.
        let mut digest = DefaultHasher::new();
        key.hash(&mut digest);
        self.folder.join(format!("{FILE_PREFIX}{:016x}{FILE_SUFFIX}", digest.finish()))
    }

    /// The stored plan. Whatever is wrong with the file: `None`, and a warning unless it is absent.
    fn read(&self, key: &TuningKey) -> Option<Plan> {
        let file = self.file(key);
        match read_entry(&file) {
            Ok(Some(entry)) if entry.key == *key => Some(entry.plan),
            Ok(Some(_)) => {
                tracing::warn!("{}: holds the plan of something else; it will be replaced", file.display());
                None
            }
            Ok(None) => None,
            Err(error) => {
                tracing::warn!("{error}; it will be replaced");
                None
            }
        }
    }

    fn write(&self, key: &TuningKey, plan: Plan) -> Result<PathBuf> {
        fs::create_dir_all(&self.folder).map_err(|source| Error::File {
            path: self.folder.clone(),
            action: "cannot make the cache folder",
            source,
        })?;
        let file = self.file(key);
        // Numbers, texts and enumerations: nothing here can fail to serialise.
        let json = serde_json::to_string_pretty(&Entry { key: key.clone(), plan }).expect("a plan is serialisable");
        io::save_text(&file, &(json + "\n"))?;
        Ok(file)
    }

    /// Removes every choice; returns how many there were.
    pub(crate) fn clear(&self) -> Result<usize> {
        let fail = |action| move |source| Error::File { path: self.folder.clone(), action, source };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(fail("cannot list")(error)),
        };
        let mut removed = 0;
        for entry in entries {
            let path = entry.map_err(fail("cannot list"))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !(name.starts_with(FILE_PREFIX) && name.ends_with(FILE_SUFFIX)) {
                continue;
            }
            match fs::remove_file(&path) {
                Ok(()) => removed += 1,
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(Error::File { path, action: "cannot remove", source }),
            }
        }
        Ok(removed)
    }
}

/// A file's choice; `None` where there is no file.
fn read_entry(file: &Path) -> Result<Option<Entry>> {
    let fail = |source| Error::File { path: file.to_owned(), action: "cannot read", source };
    let refuse = |reason: String| Error::Format { path: file.to_owned(), reason };
    let meta = match fs::metadata(file) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
        return Err(refuse("not a stored plan".to_owned()));
    }
    let bytes = fs::read(file).map_err(fail)?;
    let entry: Entry = serde_json::from_slice(&bytes).map_err(|error| refuse(format!("not a stored plan: {error}")))?;
    entry.plan.validate().map_err(|error| refuse(error.to_string()))?;
    Ok(Some(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathKernel, Paths};

    fn key(width: u32) -> TuningKey {
        TuningKey {
            device: "made up (9.0)".to_owned(),
            driver: "CUDA 13.0".to_owned(),
            program: "0.1.0 1234".to_owned(),
            width,
            height: 1080,
            disparities: 128,
            paths: Paths::Eight,
        }
    }

    fn cache() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("below/stereo");
        (dir, Cache { folder })
    }

    const PLAN: Plan =
        Plan { oblique: PathKernel::Bulk { chunk: 16, stages: 2 }, horizontal_first: false, ..Plan::PLAIN };

    #[test]
    fn what_is_stored_is_found_under_its_key_alone() {
        let (_dir, cache) = cache();
        assert_eq!(cache.read(&key(1920)), None);
        let file = cache.write(&key(1920), PLAN).unwrap();
        assert_eq!(cache.read(&key(1920)), Some(PLAN));
        let others = [
            key(1921),
            TuningKey { height: 1, ..key(1920) },
            TuningKey { disparities: 256, ..key(1920) },
            TuningKey { paths: Paths::Four, ..key(1920) },
            TuningKey { device: "other".to_owned(), ..key(1920) },
            TuningKey { driver: "other".to_owned(), ..key(1920) },
            TuningKey { program: "other".to_owned(), ..key(1920) },
        ];
        for other in others {
            assert_eq!(cache.read(&other), None, "{other:?}");
            // Even where two keys had the same digest.
            fs::create_dir_all(cache.folder()).unwrap();
            fs::copy(&file, cache.file(&other)).unwrap();
            assert_eq!(cache.read(&other), None, "{other:?}");
        }
        cache.write(&key(1920), Plan::PLAIN).unwrap();
        assert_eq!(cache.read(&key(1920)), Some(Plan::PLAIN));
    }

    #[test]
    fn a_damaged_or_foreign_file_is_no_plan_and_is_replaced() {
        let (_dir, cache) = cache();
        let file = cache.write(&key(7), PLAN).unwrap();
        let good = fs::read(&file).unwrap();
        let text = String::from_utf8(good.clone()).unwrap();
        for bad in [
            Vec::new(),
            good[..good.len() / 2].to_vec(),
            vec![0xff; 100],
            vec![b' '; MAX_FILE_BYTES as usize + 1],
            b"[1, 2, 3]".to_vec(),
            text.replace("\"streams\": 8", "\"streams\": 80").into_bytes(),
            text.replace("\"chunk\": 16", "\"chunk\": 5").into_bytes(),
            text.replace("\"plan\"", "\"plot\"").into_bytes(),
        ] {
            assert_ne!(bad, good);
            fs::write(&file, &bad).unwrap();
            assert_eq!(cache.read(&key(7)), None, "{:?}", String::from_utf8_lossy(&bad));
            cache.write(&key(7), PLAN).unwrap();
            assert_eq!(fs::read(&file).unwrap(), good);
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(cache.read(&key(7)), None);
        assert!(cache.write(&key(7), PLAN).is_err(), "a folder is in the way");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let cache = Cache { folder: dir.path().join("file/stereo") };
        let text = cache.write(&key(1), PLAN).unwrap_err().to_string();
        assert!(text.contains("file/stereo") && text.contains("cannot make the cache folder"), "{text}");
        assert_eq!(cache.read(&key(1)), None);
    }

    #[test]
    fn clearing_leaves_what_is_not_ours() {
        let (_dir, cache) = cache();
        assert_eq!(cache.clear().unwrap(), 0);
        for width in 1..=3 {
            cache.write(&key(width), PLAN).unwrap();
        }
        let other = cache.folder().join("notes.txt");
        fs::write(&other, "mine").unwrap();
        assert_eq!(cache.clear().unwrap(), 3);
        assert_eq!(cache.read(&key(1)), None);
        assert_eq!(fs::read_to_string(other).unwrap(), "mine");
    }

    #[test]
    fn many_at_a_time_leave_a_whole_file() {
        let (_dir, cache) = cache();
        let plans = [PLAN, Plan::PLAIN, Plan { streams: 1, ..PLAN }];
        std::thread::scope(|scope| {
            for plan in plans {
                let cache = &cache;
                scope.spawn(move || {
                    for _ in 0..20 {
                        cache.write(&key(5), plan).unwrap();
                        assert!(plans.contains(&cache.read(&key(5)).unwrap()));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 1, "no temporary file stays");
    }
}
