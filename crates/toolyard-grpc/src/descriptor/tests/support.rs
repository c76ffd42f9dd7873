//! Descriptors from texts.

use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use toolyard_core::Json;

use crate::descriptor::{MethodFilter, MethodTool, ServiceTools};

/// Files by name.
#[derive(Debug)]
struct TextResolver(Vec<(String, String)>);

impl FileResolver for TextResolver {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let found = self.0.iter().find(|(own, _)| own == name);
        let (_, text) = found.ok_or_else(|| protox::Error::file_not_found(name))?;
        File::from_source(name, text)
    }
}

/// Compiles files; the last one is the root.
pub(super) fn compile(files: &[(&str, &str)]) -> Vec<u8> {
    let texts = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let mut resolver = ChainFileResolver::new();
    resolver.add(TextResolver(texts));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(true);
    compiler.open_file(files.last().unwrap().0).unwrap();
    compiler.encode_file_descriptor_set()
}

/// Returns the tools of a text in proto3 without its first line.
pub(super) fn tools(proto: &str) -> ServiceTools {
    let text = format!("syntax = \"proto3\";\n{proto}");
    let set = compile(&[("test.proto", &text)]);
    ServiceTools::from_file_descriptor_set(&set, &MethodFilter::default()).unwrap()
}

/// Returns the tool of a method that takes and returns a message `M`, which the text defines.
pub(super) fn echo(proto: &str) -> MethodTool {
    tools(&format!("{proto}\nservice S {{ rpc Echo(M) returns (M); }}")).methods()[0].clone()
}

/// Returns a result of arguments that are sent and returned.
pub(super) fn echoed(method: &MethodTool, arguments: &str) -> Result<String, String> {
    let arguments = Json::parse(arguments.to_owned()).unwrap();
    let message = method.encode(arguments.as_text()).map_err(|error| {
        let text = error.to_string();
        text.strip_prefix("Invalid arguments: ").unwrap().to_owned()
    })?;
    method.decode(message).map_err(|error| format!("result: {error}"))
}
