//! Validation of arguments by a schema has a bounded and reproducible number of steps. A validation that ends within
//! its steps has the result of the plain validator.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_core::Json;
use toolyard_core::schema::{CompiledSchema, MAX_TEXT, SchemaMismatch, ValidationBudget};

fuzz_target!(|text: &[u8]| {
    let Ok(pair) = Json::parse(text.to_vec()) else { return };
    let Ok(items) = pair.to_items() else { return };
    let [schema, arguments] = items.as_slice() else { return };
    let (schema, value) = (schema.to_value(), arguments.to_value());
    let Ok(compiled) = CompiledSchema::compile(&schema) else { return };
    let budget = ValidationBudget::of(arguments.as_bytes().len());
    let (checked, steps) = compiled.check_counting(&value, &budget);
    assert!(steps <= budget.most_steps(), "{steps} of {budget:?}");
    assert_eq!(compiled.check_counting(&value, &budget).1, steps);
    if let Err(SchemaMismatch::Faults(text)) = &checked {
        assert!(text.len() <= MAX_TEXT);
    }
    // The plain validator gives up patterns with lookaround earlier.
    let looks_around = pair.as_text().contains("(?");
    if checked != Err(SchemaMismatch::OutOfSteps) && !looks_around {
        let plain = jsonschema::validator_for(&schema).map(|schema| schema.is_valid(&value));
        assert_eq!(plain.ok(), Some(checked.is_ok()));
    }
});
