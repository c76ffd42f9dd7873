//! A parsed package list has no options, paths or variables for pip, and survives serialization and parsing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_sandbox::packages::requirements::RequirementList;

fuzz_target!(|list: &str| {
    let Ok(read) = RequirementList::parse(list) else { return };
    let text = read.text();
    assert_eq!(RequirementList::parse(text).as_ref(), Ok(&read));
    assert_eq!(text.lines().count(), read.packages().len());
    for line in text.lines() {
        assert!(line.starts_with(|c: char| c.is_ascii_alphanumeric()), "{line:?}");
        assert!(!line.contains(['@', '/', '\\', '$', '#', '`']), "{line:?}");
        let mut options = line.split([' ', '\t']).filter(|word| word.starts_with('-'));
        assert!(options.all(|option| option.starts_with("--hash=sha")), "{line:?}");
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
    }
});
