//! Where a line of a capture comes from: `tail -n +1 FILE…` writes `==> FILE <==` above each file.

/// Names the file whose lines follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its last name: `vmstat`, `memory.stat`; empty where no line said.
    file: String,
    /// The folder before it.
    folder: String,
}

impl Section {
    /// Reads the line above a file.
    pub fn of(line: &str) -> Option<Self> {
        let path = line.strip_prefix("==> ")?.strip_suffix(" <==")?;
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = folder.rsplit('/').next().unwrap_or_default();
        Some(Self { file: file.to_string(), folder: folder.to_string() })
    }

    /// Names a figure of the file.
    pub fn name(&self, key: &str) -> String {
        match self.file.as_str() {
            "" | "vmstat" => key.to_string(),
            file => format!("{file}.{key}"),
        }
    }

    /// Names the file's only value: `memory.current`.
    pub fn lone(&self) -> Option<String> {
        (!self.file.is_empty()).then(|| self.file.clone())
    }

    /// Begins the names of stall times: `memory.pressure` for a group's file, `pressure.memory` for
    /// /proc/pressure/memory and where no line said.
    pub fn stalls(&self) -> String {
        let of_machine = (self.folder == "pressure").then_some(self.file.as_str());
        match of_machine.or((!self.is_named()).then_some("memory")) {
            Some(resource) => format!("pressure.{resource}"),
            None => self.file.clone(),
        }
    }

    /// Tells whether it says what file it is.
    pub fn is_named(&self) -> bool {
        !self.file.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Section;

    #[test]
    fn a_path_gives_the_names_of_its_figures() {
        let name =
            |path: &str, key: &str| Section::of(&format!("==> {path} <==")).unwrap().name(key);
        assert_eq!(name("/proc/vmstat", "pgscan"), "pgscan");
        assert_eq!(name("/sys/fs/cgroup/a/memory.stat", "anon"), "memory.stat.anon");
        assert_eq!(name("memory.events", "high"), "memory.events.high");
        assert_eq!(Section::of("==> x"), None);
        let stalls = |path: &str| Section::of(&format!("==> {path} <==")).unwrap().stalls();
        assert_eq!(stalls("/proc/pressure/io"), "pressure.io");
        assert_eq!(stalls("/sys/fs/cgroup/a/memory.pressure"), "memory.pressure");
        assert_eq!(Section::default().stalls(), "pressure.memory");
    }
}
