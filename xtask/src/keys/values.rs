//! What a key takes when a plan does not set it, as a plan would write it.

use super::{between, kebab};

/// The sources that say what a type's fields are by default.
pub(super) struct Defaults<'a> {
    source: &'a str,
    /// `impl Default`, or the function that it calls.
    body: &'a str,
    /// Every field that says nothing else takes the default of its own type.
    derived: bool,
}

impl<'a> Defaults<'a> {
    pub(super) fn of(source: &'a str, name: &str) -> Self {
        let body = between(source, &format!("impl Default for {name} {{\n"), "\n}\n");
        let called = body.and_then(|body| between(body, "        Self::", "()\n"));
        let of_fn = |f| between(source, &format!("pub fn {f}() -> Self {{\n"), "\n    }\n");
        let before = source.split_once(&format!("struct {name} {{\n")).map_or("", |(b, _)| b);
        let attributes = before.rsplit_once("\n\n").map_or(before, |(_, head)| head);
        let words: Vec<&str> = attributes.split(['(', ')', ',']).map(str::trim).collect();
        let derived = words.contains(&"Default") && words.contains(&"default");
        Self { source, body: called.and_then(of_fn).or(body).unwrap_or(""), derived }
    }

    /// The default of a field with its attribute of serde, as a plan writes it; empty: none, or
    /// none that a plan could write.
    pub(super) fn field(&self, field: &str, kind: &str, attribute: &str) -> String {
        if let Some(function) = between(attribute, "default = \"", "\"") {
            let head = format!("fn {function}() -> ");
            let body = between(self.source, &head, "\n}").and_then(|f| f.split_once("{\n"));
            return self.written(body.map_or("", |(_, body)| body.trim()));
        }
        let rest = self.body.split_once(&format!(" {field}: ")).map_or("", |(_, rest)| rest);
        let line = rest.lines().next().unwrap_or("");
        let value = line.split([',', '}']).next().unwrap_or("").trim();
        let zero = self.derived || attribute.contains("(default)");
        match (value, kind) {
            ("", "bool") if zero => "`false`".into(),
            ("", "String") if zero => "`\"\"`".into(),
            _ => self.written(value),
        }
    }

    fn written(&self, value: &str) -> String {
        let owned = [".to_owned()", ".to_string()", ".into()"];
        let text = owned.iter().find_map(|end| value.strip_suffix(end));
        let of = |wrap| value.strip_prefix(wrap)?.strip_suffix(')');
        if value == "true" || value == "false" {
            return format!("`{value}`");
        }
        match value {
            "Size::MAX" => return "`\"max\"`".into(),
            "String::new()" => return "`\"\"`".into(),
            _ => {}
        }
        if let Some(inner) = of("Size(") {
            return self.number(inner).map_or_else(String::new, size);
        }
        if let Some(text) = text.or_else(|| of("Value::String(")?.strip_suffix(".to_string()")) {
            return if text.starts_with('"') { format!("`{text}`") } else { self.written(text) };
        }
        if let Some(inner) = of("Value::Integer(") {
            return self.written(inner);
        }
        let word = value.rsplit_once("::").map(|(_, word)| word);
        if let Some(word) = word.filter(|w| !w.is_empty() && w.chars().all(char::is_alphanumeric)) {
            return format!("`\"{}\"`", kebab(word));
        }
        if value.contains('.') && value.parse::<f64>().is_ok() {
            return value.into();
        }
        self.number(value).map(|n| n.to_string()).or_else(|| self.list(value)).unwrap_or_default()
    }

    fn list(&self, value: &str) -> Option<String> {
        let literal = self.constant(value).unwrap_or(value);
        literal.starts_with('[').then(|| format!("`{literal}`"))
    }

    /// A constant's expression.
    fn constant(&self, name: &str) -> Option<&'a str> {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_uppercase() || c == '_');
        let (_, rest) = plain.then(|| self.source.split_once(&format!("const {name}: ")))??;
        Some(rest.split_once(" = ")?.1.split_once(';')?.0)
    }

    /// The value of a literal, a constant, or a product or shift of them.
    fn number(&self, text: &str) -> Option<u64> {
        let text = text.trim();
        if let Some((left, right)) = text.split_once(" << ") {
            return self.number(left)?.checked_shl(self.number(right)? as u32);
        }
        if let Some((left, right)) = text.split_once(" * ") {
            return self.number(left)?.checked_mul(self.number(right)?);
        }
        let digits = text.replace('_', "");
        digits.parse().ok().or_else(|| self.number(self.constant(text)?))
    }
}

/// Bytes as plans write them.
fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = |&&(_, shift): &&(&str, u32)| bytes > 0 && bytes.is_multiple_of(1 << shift);
    match units.iter().find(whole) {
        Some((unit, shift)) => format!("`\"{}{unit}\"`", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "const MB: u64 = 1_000_000;\nconst BAND: [f64; 2] = [0.97, 1.03];\n\n\
        #[derive(Clone)]\npub struct Group {\n}\n\nimpl Default for Group {\n    \
        fn default() -> Self {\n        Self::small()\n    }\n}\n\nimpl Group {\n    \
        pub fn small() -> Self {\n        Self {\n            rate: 3_000 * MB,\n            \
        max: Size::MAX,\n            how: Way::OnFoot,\n            min: \
        Size(3 << 20),\n            \
        path: \"/x\".to_owned(),\n            theta: 0.99,\n            on: true,\n        \
        }\n    }\n}\n\nfn hour() -> u64 {\n    3600\n}\n\n\
        fn band() -> [f64; 2] {\n    BAND\n}\n\n\
        #[derive(Default)]\n#[serde(deny_unknown_fields, default)]\nstruct Head {\n";

    #[test]
    fn values_are_written_as_plans_write_them() {
        let defaults = Defaults::of(SOURCE, "Group");
        let fields = ["rate", "max", "how", "min", "path", "theta", "on", "none"];
        let found = fields.map(|field| defaults.field(field, "u64", ""));
        let expected = [
            "3000000000",
            "`\"max\"`",
            "`\"on-foot\"`",
            "`\"3MiB\"`",
            "`\"/x\"`",
            "0.99",
            "`true`",
            "",
        ];
        assert_eq!(found.as_slice(), expected);
    }

    #[test]
    fn fields_on_one_line_are_read_too() {
        let source = "impl Default for One {\n    fn default() -> Self {\n        \
            Self { a: 7, group: String::new(), b: 9 }\n    }\n}\n";
        let defaults = Defaults::of(source, "One");
        let found = ["a", "group", "b"].map(|field| defaults.field(field, "u64", ""));
        assert_eq!(found, ["7", "`\"\"`", "9"]);
    }

    #[test]
    fn functions_and_types_say_defaults_too() {
        let defaults = Defaults::of(SOURCE, "Head");
        let field = |kind, attribute| defaults.field("x", kind, attribute);
        assert_eq!(field("u64", "#[serde(default = \"hour\")]"), "3600");
        assert_eq!(field("[f64; 2]", "#[serde(default = \"band\")]"), "`[0.97, 1.03]`");
        assert_eq!((field("bool", ""), field("String", "")), ("`false`".into(), "`\"\"`".into()));
        assert_eq!(Defaults::of(SOURCE, "Group").field("x", "bool", ""), "");
    }
}
