//! Options about booted kernels: which to boot, and several to compare.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::Value;

use mglru_error::Error;
use mglru_lab::backend::kernel::located;
use mglru_lab::dotted::Assignment;
use mglru_lab::variant::Variant;

/// Variant of the kernel backend that a named kernel is, unless others are asked for.
const PLAIN: &str = "k6.12";

/// Names the kernels to boot.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Booted {
    /// Boot this kernel, a bzImage (backend kernel), or a version that was fetched (`mglru
    /// kernel`): 7.1.13, 7.1 or newest; NAME=IMAGE (repeatable) compares several. The guest program
    /// is found beside mglru or, in a source tree, built on first use; the default kernel comes
    /// from `mglru doctor --install`
    #[arg(long = "kernel", value_name = "[NAME=]IMAGE")]
    pub kernels: Vec<KernelName>,
    /// Take the kernel's modules from this folder [default: lib/modules beside the image's boot
    /// folder]
    #[arg(long, value_name = "DIR")]
    pub modules: Option<PathBuf>,
    /// Add these words to the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// Run the guest by the host's clock, with KVM where it works and disks of the host: such runs
    /// do not repeat. By default it runs in virtual time, by an instruction clock, with disks in
    /// the guest's memory, and repeats to the byte (`kernel.clock`)
    #[arg(long)]
    pub host_time: bool,
    /// Count the kernel's instructions by function while the work goes on; `mglru profile` shows
    /// them. It needs virtual time and changes nothing else about a run (`kernel.profile`)
    #[arg(long)]
    pub profile: bool,
}

/// Holds a kernel's file, with a name where it is one of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelName {
    name: Option<String>,
    image: String,
}

impl FromStr for KernelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = text.split_once('=').filter(|(name, _)| !name.contains('/'));
        let (name, image) = match named {
            Some((name, image)) => (Some(name.to_string()), image),
            None => (None, text),
        };
        if image.is_empty() || name.as_ref().is_some_and(String::is_empty) {
            return Err("expected IMAGE or NAME=IMAGE".to_string());
        }
        let image = located(Path::new(image))?;
        Ok(Self { name, image: image.display().to_string() })
    }
}

impl Booted {
    /// No option was given.
    pub(super) fn is_empty(&self) -> bool {
        let has_options = self.modules.is_some() || self.append.is_some();
        let has_options = has_options || self.host_time || self.profile;
        self.kernels.is_empty() && !has_options
    }

    /// Turns the options into keys of a plan that hold for every run.
    pub(super) fn sets(&self) -> Vec<Assignment> {
        let set = |key: &str, value: String| Assignment {
            key: format!("kernel.{key}"),
            value: Value::String(value),
        };
        let unnamed = self.kernels.iter().filter(|kernel| kernel.name.is_none());
        let image = unnamed.map(|kernel| set("image", kernel.image.clone()));
        let modules = self.modules.iter().map(|dir| set("modules", dir.display().to_string()));
        let append = self.append.iter().map(|a| set("append", a.clone()));
        let clock = self.host_time.then(|| set("clock", "host".to_string()));
        let profile = self
            .profile
            .then(|| Assignment { key: "kernel.profile".to_string(), value: Value::Boolean(true) });
        image.chain(modules).chain(append).chain(clock).chain(profile).collect()
    }

    /// A variant for each named kernel, or for each of them with each of `asked`.
    ///
    /// # Errors
    /// Kernels with and without names, two of one name, a variant that cannot be read.
    pub(super) fn variants(&self, asked: &[String]) -> Result<Vec<Variant>, Error> {
        let names: Vec<&str> = self.kernels.iter().filter_map(|k| k.name.as_deref()).collect();
        let refuse = |problem: &str| Err(Error::Request(format!("--kernel: {problem}")));
        if self.kernels.len() > 1 && names.len() < self.kernels.len() {
            return refuse("several kernels need names: --kernel A=IMAGE --kernel B=IMAGE");
        }
        if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
            return refuse("two kernels of one name");
        }
        let mut variants = Vec::new();
        for KernelName { name, image } in &self.kernels {
            let Some(name) = name else { continue };
            if asked.is_empty() {
                variants.push(with_image(Variant::named(PLAIN), name.clone(), image));
            }
            for text in asked {
                let variant = Variant::parse(text)
                    .map_err(|e| Error::Request(format!("--variant {text}: {e}")))?;
                variants.push(with_image(variant, format!("{name}:{text}"), image));
            }
        }
        Ok(variants)
    }

    /// The options as they were given.
    pub(super) fn options(&self) -> Vec<(&'static str, String)> {
        let kernel = |k: &KernelName| match &k.name {
            Some(name) => format!("{name}={}", k.image),
            None => k.image.clone(),
        };
        let kernels = self.kernels.iter().map(|k| ("kernel", kernel(k)));
        let modules = self.modules.iter().map(|dir| ("modules", dir.display().to_string()));
        let append = self.append.iter().map(|text| ("append", text.clone()));
        kernels.chain(modules).chain(append).collect()
    }
}

fn with_image(mut variant: Variant, name: String, image: &str) -> Variant {
    variant.name = name;
    variant.set.insert("image".to_string(), Value::String(image.to_string()));
    variant
}

#[cfg(test)]
mod tests {
    use super::*;

    fn booted(kernels: &[&str]) -> Booted {
        let kernels = kernels.iter().map(|text| text.parse().unwrap()).collect();
        Booted { kernels, ..Booted::default() }
    }

    #[test]
    fn named_kernels_are_variants_and_a_plain_one_is_a_key() {
        let two = booted(&["a=x/bzImage", "b=/y=z"]);
        let names = |asked: &[&str]| -> Vec<String> {
            let asked: Vec<String> = asked.iter().map(|text| text.to_string()).collect();
            let variants = two.variants(&asked).unwrap();
            variants
                .into_iter()
                .map(|v| format!("{} {} {}", v.name, v.base, v.set["image"]))
                .collect()
        };
        assert_eq!(names(&[]), ["a k6.12 \"x/bzImage\"", "b k6.12 \"/y=z\""]);
        assert_eq!(names(&["classic"])[0], "a:classic classic \"x/bzImage\"");
        let plain = booted(&["x/a=b"]);
        assert!(plain.variants(&[]).unwrap().is_empty());
        assert_eq!(plain.sets()[0].value.as_str(), Some("x/a=b"));
        assert_eq!(two.options()[1], ("kernel", "b=/y=z".to_string()));
    }

    #[test]
    fn several_kernels_need_names_of_their_own() {
        let error = |kernels: &[&str]| booted(kernels).variants(&[]).unwrap_err().to_string();
        assert!(error(&["x", "y"]).starts_with("--kernel: several kernels need names"));
        assert_eq!(error(&["a=x", "a=y"]), "--kernel: two kernels of one name");
        assert!("=x".parse::<KernelName>().is_err() && "a=".parse::<KernelName>().is_err());
    }
}
