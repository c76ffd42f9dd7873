//! Parameters outside of the path: query, headers and cookies.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use toolyard_core::{Json, ToolError};

use super::escape::{self, PercentEscape};
use super::out::BoundedText;
use super::{OpenedValue, in_media_type, invalid_argument, media, style};
use crate::operation::{OperationParameter, ParameterLocation, ParameterStyle, StyleOptions, ValueEncoding};

/// Headers of the connection and of the client itself: it could not read a response that it did not request.
const CONNECTION_HEADERS: [HeaderName; 10] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::ACCEPT_ENCODING,
    header::PROXY_AUTHORIZATION,
];

/// The encoded parameters.
pub(crate) struct WrittenParameters {
    query: BoundedText,
    cookies: BoundedText,
    /// The headers.
    pub(crate) headers: HeaderMap,
}

impl WrittenParameters {
    /// Starts with the query of the path template.
    pub(crate) fn new(query: Option<&str>) -> Self {
        let mut parameters =
            Self { query: BoundedText::url(), cookies: BoundedText::url(), headers: HeaderMap::new() };
        parameters.query.push(query.unwrap_or_default());
        parameters
    }

    /// Encodes a parameter. Path parameters are ignored.
    pub(crate) fn add(&mut self, parameter: &OperationParameter, value: &Json) -> Result<(), ToolError> {
        if value.is_null() && !parameter.required {
            return Ok(());
        }
        match parameter.location {
            ParameterLocation::Path => Ok(()),
            ParameterLocation::Query => self.query(parameter, value),
            ParameterLocation::QueryString => self.query_string(parameter, value),
            ParameterLocation::Header => self.header(parameter, value),
            ParameterLocation::Cookie => self.cookie(parameter, value),
        }
    }

    /// Returns the query and the headers, including the one of cookies.
    pub(crate) fn finish(mut self) -> Result<(String, HeaderMap), ToolError> {
        let cookies = HeaderValue::try_from(self.cookies.finish_text()?);
        if let Some(cookies) = cookies.ok().filter(|cookies| !cookies.is_empty()) {
            self.headers.append(header::COOKIE, cookies);
        }
        Ok((self.query.finish_text()?, self.headers))
    }

    fn query(&mut self, parameter: &OperationParameter, value: &Json) -> Result<(), ToolError> {
        let OperationParameter { name, argument, .. } = parameter;
        let styled = match &parameter.encoding {
            ValueEncoding::Styled(styled) => *styled,
            ValueEncoding::Content(media_type) => {
                self.query.pair(
                    "&",
                    &escape::percent_encoded(name),
                    &escape::percent_encoded(&in_media_type(media_type, value)),
                );
                return Ok(());
            }
        };
        let Some(value) = defined_value(parameter, value)? else { return Ok(()) };
        let escape = if styled.allow_reserved { PercentEscape::Illegal } else { PercentEscape::Reserved };
        let query = &mut self.query;
        style::pairs(argument, name, &value, styled, escape, &mut |name, value| query.pair("&", name, value))
    }

    /// Encodes the whole query: the members of a form are pairs, and a string is an already encoded query.
    fn query_string(&mut self, parameter: &OperationParameter, value: &Json) -> Result<(), ToolError> {
        let query = &mut self.query;
        if let ValueEncoding::Content(media_type) = &parameter.encoding
            && !media::is_form(media_type)
        {
            query.next("&", &escape::percent_encoded(&in_media_type(media_type, value)));
            return Ok(());
        }
        match OpenedValue::of(&parameter.argument, value)? {
            OpenedValue::Text(text) => query.next("&", &escape::encode_illegal(&text).replace('#', "%23")),
            OpenedValue::Members(members) => super::body::form::members(&members, &mut |name, value| {
                query.pair("&", name, value);
            }),
            OpenedValue::Items(_) => {
                return Err(invalid_argument(&parameter.argument, "it is neither an object nor a string"));
            }
            OpenedValue::Undefined => {}
        }
        Ok(())
    }

    fn header(&mut self, parameter: &OperationParameter, value: &Json) -> Result<(), ToolError> {
        let OperationParameter { name, argument, .. } = parameter;
        let text = match &parameter.encoding {
            ValueEncoding::Content(media_type) => in_media_type(media_type, value),
            ValueEncoding::Styled(styled) => {
                let Some(value) = defined_value(parameter, value)? else { return Ok(()) };
                style::text(name, &value, *styled, PercentEscape::Nothing)
            }
        };
        let invalid_value = |_| invalid_argument(argument, "it is not a valid header value");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| {
            invalid_argument(argument, "the OpenAPI description gives it an invalid header name")
        })?;
        let value = HeaderValue::try_from(text).map_err(invalid_value)?;
        if !CONNECTION_HEADERS.contains(&name) {
            self.headers.append(name, value);
        }
        Ok(())
    }

    /// Encodes a cookie. Pairs are separated by `; ` in any style, because nothing splits cookies at `&`. The style
    /// `cookie` does not encode values (OpenAPI 3.2, section 4.12.2.2), so that values with a delimiter are rejected.
    fn cookie(&mut self, parameter: &OperationParameter, value: &Json) -> Result<(), ToolError> {
        let OperationParameter { name, argument, .. } = parameter;
        let (value, styled) = match &parameter.encoding {
            ValueEncoding::Styled(styled) => match defined_value(parameter, value)? {
                Some(value) => (value, *styled),
                None => return Ok(()),
            },
            ValueEncoding::Content(media_type) => {
                let style =
                    if media::is_json(media_type) { ParameterStyle::Form } else { ParameterStyle::Cookie };
                let styled = StyleOptions { style, explode: false, allow_reserved: false };
                (OpenedValue::Text(in_media_type(media_type, value)), styled)
            }
        };
        let is_raw = styled.style == ParameterStyle::Cookie;
        let escape = if is_raw { PercentEscape::Nothing } else { PercentEscape::Reserved };
        let mut fits = true;
        let cookies = &mut self.cookies;
        style::pairs(argument, name, &value, styled, escape, &mut |name, value| {
            let ends = |byte: u8| byte == b';' || (byte < b' ') || byte == 0x7f;
            fits &=
                !value.bytes().any(ends) && !name.bytes().any(|byte| ends(byte) || b"= ,".contains(&byte));
            cookies.pair("; ", name, value);
        })?;
        if fits { Ok(()) } else { Err(invalid_argument(argument, "it is not a valid cookie value")) }
    }
}

/// Returns the value of a parameter; `None` if it is undefined and optional.
fn defined_value(parameter: &OperationParameter, value: &Json) -> Result<Option<OpenedValue>, ToolError> {
    let value = OpenedValue::of(&parameter.argument, value)?;
    let is_left_out = matches!(value, OpenedValue::Undefined) && !parameter.required;
    Ok((!is_left_out).then_some(value))
}
