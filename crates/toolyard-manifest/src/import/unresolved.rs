//! Imported servers whose references cannot be resolved.

use super::ImportNote;
use crate::{
    cursor::ValueCursor,
    manifest::{self, process_environment},
    problem::{SourceLocation, quoted},
    report::ProblemReport,
    tree::{NodeContent, TreeNode},
};

/// Removes the handlers whose variables are not set from an imported document, and adds a note about each: one of them
/// does not stop the others.
pub(crate) fn leave_out_unresolved(source: &str, document: &mut TreeNode, notes: &mut Vec<ImportNote>) {
    let Some(handlers) = handlers_mut(document) else { return };
    let all = std::mem::take(handlers);
    for handler in all {
        let Some(problem) = unresolved(source, &handler) else {
            handlers.push(handler);
            continue;
        };
        let location = SourceLocation::at(source, handler.position);
        let name = quoted(&name_of(&handler).unwrap_or_default());
        notes.push(ImportNote {
            location,
            message: format!("{name} is left out: {problem}"),
            is_warning: true,
        });
    }
}

/// Returns what the references of a handler lack, or `None` if they are complete or it has other problems, which are
/// reported with the whole document.
pub(super) fn unresolved(source: &str, handler: &TreeNode) -> Option<String> {
    let document = super::document("imported".to_owned(), vec![handler.clone()]);
    let problems = |report: ProblemReport<'_>| {
        manifest::check(ValueCursor::document(source, &document, &report));
        report.finish(()).err()
    };
    if problems(ProblemReport::lenient(&process_environment)).is_some() {
        return None;
    }
    let problems = problems(ProblemReport::new(&process_environment))?;
    let mut messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    messages.dedup();
    Some(messages.join("; "))
}

/// The handlers of an imported document.
pub(super) fn handlers_mut(document: &mut TreeNode) -> Option<&mut Vec<TreeNode>> {
    match &mut member_mut(member_mut(document, "spec")?, "handlers")?.content {
        NodeContent::List(handlers) => Some(handlers),
        _ => None,
    }
}

pub(super) fn member_mut<'a>(node: &'a mut TreeNode, name: &str) -> Option<&'a mut TreeNode> {
    match &mut node.content {
        NodeContent::Object(members) => {
            members.iter_mut().find(|member| member.name == name).map(|member| &mut member.value)
        }
        _ => None,
    }
}

pub(super) fn name_of(handler: &TreeNode) -> Option<String> {
    let NodeContent::Object(members) = &handler.content else { return None };
    match &members.iter().find(|member| member.name == "name")?.value.content {
        NodeContent::Text(name) => Some(name.clone()),
        _ => None,
    }
}
