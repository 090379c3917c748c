//! Hashes everything that can change a record, and names runs by it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use mglru_workload::trace::is_pipe;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::backend::kernel;
use crate::dotted;
use crate::plan::Plan;
use crate::record::SCHEMA;
use crate::variant::Variant;
use mglru_error::KeyError;

/// Seeds and selected variants are left out: more of either extends the same experiment.
pub(super) fn hash(plan: &Plan, backend: &str) -> Result<String, KeyError> {
    let mut text = format!("schema {SCHEMA}\nplan {}\nbackend {backend}\n", plan.name);
    text += &format!("scale {}\n", plan.scale);
    text += &dotted::canonical(&plan.sections);
    for variant in &plan.variants {
        text += &format!("variant {} = {} {:?}\n", variant.name, variant.base, variant.set);
        for with in &variant.with {
            text += &format!("with {} = {}\n", with.key, with.value);
        }
    }
    for (key, path) in inputs(&plan.sections, &plan.variants) {
        text += &format!("content {}\n", content(key, &path)?);
    }
    Ok(hex(&text, 8))
}

/// Files the workload is made from, and kernels: a name says nothing of what is in it.
fn inputs(sections: &Table, variants: &[Variant]) -> Vec<(&'static str, String)> {
    let named = |section: &str, key: &str| sections.get(section)?.get(key);
    let of = |key, value| paths(value).into_iter().map(move |path| (key, path));
    let images = variants.iter().map(|variant| variant.set.get("image"));
    let images = images.chain([named("kernel", "image")]).flat_map(|v| of("kernel.image", v));
    of("workload.path", named("workload", "path")).chain(images).collect()
}

fn paths(named: Option<&Value>) -> Vec<String> {
    match named {
        Some(Value::String(path)) => vec![path.clone()],
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).map(str::to_string).collect()
        }
        _ => Vec::new(),
    }
}

fn content(key: &str, path: &str) -> Result<String, KeyError> {
    if is_pipe(Path::new(path)) {
        let problem = "can be read once, and a plan reads it for every run: save it as a file";
        return Err(KeyError::value(key, path, problem));
    }
    let unreadable = |e| KeyError::key(key, format!("{path}: {e}"));
    let opened = match key {
        "kernel.image" => {
            let image = kernel::located(Path::new(path)).map_err(|e| KeyError::key(key, e))?;
            File::open(image)
        }
        _ => File::open(path),
    };
    let mut file = BufReader::with_capacity(1 << 20, opened.map_err(unreadable)?);
    let mut digest = Sha256::new();
    loop {
        let chunk = file.fill_buf().map_err(unreadable)?;
        if chunk.is_empty() {
            return Ok(digits(&digest.finalize()));
        }
        digest.update(chunk);
        let length = chunk.len();
        file.consume(length);
    }
}

/// Returns the name of a run, with which its files begin.
pub fn run_id(hash: &str, variant: &str, seed: u64, point: &str) -> String {
    hex(&format!("{hash} {variant} {seed} {point}"), 6)
}

/// Names a text by the first bytes of its SHA-256, in hexadecimal digits.
pub fn hex(text: &str, bytes: usize) -> String {
    digits(&Sha256::digest(text.as_bytes())[..bytes])
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_follows_the_content_of_input_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            content("workload.path", file.path().to_str().unwrap()).unwrap()
        };
        assert_ne!(of("s 0x1000 1\n"), of("s 0x2000 1\n"));
        assert_eq!(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let text = "[workload]\npath = [\"a\", \"b\"]\n[kernel]\nimage = \"k\"";
        let plan: Table = text.parse().unwrap();
        let mut variant = Variant::named("x");
        variant.set.insert("image".to_string(), Value::String("l".to_string()));
        let found = inputs(&plan, &[variant]);
        let paths: Vec<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(paths, ["a", "b", "l", "k"]);
        let error = content("workload.path", "no/such.trc").unwrap_err().to_string();
        assert!(error.starts_with("workload.path: no/such.trc: "), "{error}");
    }
}
