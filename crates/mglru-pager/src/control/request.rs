//! Answers one request.

use crate::error::PagerError;
use crate::group::Group;
use crate::pager::Pager;

/// Serves a request and returns the framed answer.
pub fn answer(pager: &Pager, line: &str) -> String {
    let fields: Vec<&str> = line.split('\t').collect();
    match serve(pager, &fields) {
        Ok(text) => format!("ok {}\n{text}", text.len()),
        Err((errno, reason)) => refusal(errno, &reason),
    }
}

/// Frames the answer to a client that is refused.
pub fn refusal(errno: i32, reason: &str) -> String {
    format!("no {errno} {}\n{reason}", reason.len())
}

fn serve(pager: &Pager, fields: &[&str]) -> Result<String, (i32, String)> {
    let refused = |error: PagerError| (error.errno(), error.to_string());
    let at = |path: &str| pager.group(path).map_err(refused);
    let done = |done: Result<(), PagerError>| done.map(|()| String::new()).map_err(refused);
    match fields {
        ["ls", group] => children(&at(group)?).map_err(refused),
        ["get", group, file] => at(group)?.read(file).map_err(refused),
        ["set", group, file, value] => done(at(group)?.write(file, value)),
        ["mkdir", group] => done(make(pager, group)),
        ["rmdir", group] => done(at(group)?.remove()),
        _ => Err((libc::EINVAL, "not a request".into())),
    }
}

fn children(group: &Group) -> Result<String, PagerError> {
    let name = |child: &Group| child.path().rsplit('/').next().unwrap_or_default().to_string();
    Ok(group.children()?.iter().map(|child| name(child) + "\n").collect())
}

fn make(pager: &Pager, path: &str) -> Result<(), PagerError> {
    let no_name = || PagerError::GroupName(path.into());
    let (parent, name) = path.rsplit_once('/').ok_or_else(no_name)?;
    pager.group(if parent.is_empty() { "/" } else { parent })?.create(name).map(drop)
}
