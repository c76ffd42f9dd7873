//! Parameters outside of the path: the query, headers and cookies.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use toolyard_core::{Json, ToolError};

use super::escape::{self, Escape};
use super::out::Out;
use super::{Opened, in_media_type, invalid, media, style};
use crate::operation::{Form, Location, Parameter, Style, Styled};

/// What belongs to a connection, and what a client says for itself: a response that it did not ask for could not be read.
const OF_THE_CONNECTION: [HeaderName; 10] = [
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

/// What parameters have written so far.
pub(crate) struct Written {
    query: Out,
    cookies: Out,
    /// The headers.
    pub(crate) headers: HeaderMap,
}

impl Written {
    /// Nothing but the query that a path brings with it.
    pub(crate) fn new(query: Option<&str>) -> Self {
        let mut written = Self { query: Out::url(), cookies: Out::url(), headers: HeaderMap::new() };
        written.query.push(query.unwrap_or_default());
        written
    }

    /// Writes the value of a parameter. One of the path is written already.
    pub(crate) fn add(&mut self, parameter: &Parameter, value: &Json) -> Result<(), ToolError> {
        if value.is_null() && !parameter.required {
            return Ok(());
        }
        match parameter.location {
            Location::Path => Ok(()),
            Location::Query => self.query(parameter, value),
            Location::QueryString => self.query_string(parameter, value),
            Location::Header => self.header(parameter, value),
            Location::Cookie => self.cookie(parameter, value),
        }
    }

    /// The query, and the headers, with the one of the cookies.
    pub(crate) fn finish(mut self) -> Result<(String, HeaderMap), ToolError> {
        let cookies = HeaderValue::try_from(self.cookies.finish_text()?);
        if let Some(cookies) = cookies.ok().filter(|cookies| !cookies.is_empty()) {
            self.headers.append(header::COOKIE, cookies);
        }
        Ok((self.query.finish_text()?, self.headers))
    }

    fn query(&mut self, parameter: &Parameter, value: &Json) -> Result<(), ToolError> {
        let Parameter { name, argument, .. } = parameter;
        let styled = match &parameter.form {
            Form::Styled(styled) => *styled,
            Form::Content(media_type) => {
                self.query.pair(
                    "&",
                    &escape::encoded(name),
                    &escape::encoded(&in_media_type(media_type, value)),
                );
                return Ok(());
            }
        };
        let Some(value) = defined(parameter, value)? else { return Ok(()) };
        let escape = if styled.allow_reserved { Escape::Illegal } else { Escape::Reserved };
        let query = &mut self.query;
        style::pairs(argument, name, &value, styled, escape, &mut |name, value| query.pair("&", name, value))
    }

    /// The whole query. A form has its members for pairs; a text which calls itself one is one.
    fn query_string(&mut self, parameter: &Parameter, value: &Json) -> Result<(), ToolError> {
        let query = &mut self.query;
        if let Form::Content(media_type) = &parameter.form
            && !media::is_form(media_type)
        {
            query.next("&", &escape::encoded(&in_media_type(media_type, value)));
            return Ok(());
        }
        match Opened::of(&parameter.argument, value)? {
            Opened::Text(text) => query.next("&", &escape::legal(&text).replace('#', "%23")),
            Opened::Members(members) => super::body::form::members(&members, &mut |name, value| {
                query.pair("&", name, value);
            }),
            Opened::Items(_) => {
                return Err(invalid(&parameter.argument, "it is neither an object nor a text"));
            }
            Opened::Undefined => {}
        }
        Ok(())
    }

    fn header(&mut self, parameter: &Parameter, value: &Json) -> Result<(), ToolError> {
        let Parameter { name, argument, .. } = parameter;
        let text = match &parameter.form {
            Form::Content(media_type) => in_media_type(media_type, value),
            Form::Styled(styled) => {
                let Some(value) = defined(parameter, value)? else { return Ok(()) };
                style::text(name, &value, *styled, Escape::Nothing)
            }
        };
        let unfit = |_| invalid(argument, "it cannot stand in a header");
        let name = HeaderName::try_from(name.as_str())
            .map_err(|_| invalid(argument, "its document gives it a name that no header has"))?;
        let value = HeaderValue::try_from(text).map_err(unfit)?;
        if !OF_THE_CONNECTION.contains(&name) {
            self.headers.append(name, value);
        }
        Ok(())
    }

    /// Pairs are apart by `; ` in any style, for nothing reads a `&` between cookies. In the style `cookie` values are
    /// not encoded (OpenAPI 3.2, section 4.12.2.2), so that one which would end its own place is refused.
    fn cookie(&mut self, parameter: &Parameter, value: &Json) -> Result<(), ToolError> {
        let Parameter { name, argument, .. } = parameter;
        let (value, styled) = match &parameter.form {
            Form::Styled(styled) => match defined(parameter, value)? {
                Some(value) => (value, *styled),
                None => return Ok(()),
            },
            Form::Content(media_type) => {
                let style = if media::is_json(media_type) { Style::Form } else { Style::Cookie };
                let styled = Styled { style, explode: false, allow_reserved: false };
                (Opened::Text(in_media_type(media_type, value)), styled)
            }
        };
        let is_raw = styled.style == Style::Cookie;
        let escape = if is_raw { Escape::Nothing } else { Escape::Reserved };
        let mut fits = true;
        let cookies = &mut self.cookies;
        style::pairs(argument, name, &value, styled, escape, &mut |name, value| {
            let ends = |byte: u8| byte == b';' || (byte < b' ') || byte == 0x7f;
            fits &=
                !value.bytes().any(ends) && !name.bytes().any(|byte| ends(byte) || b"= ,".contains(&byte));
            cookies.pair("; ", name, value);
        })?;
        if fits { Ok(()) } else { Err(invalid(argument, "it cannot stand in a cookie")) }
    }
}

/// A value that a parameter has; none where it is undefined and need not be there.
fn defined(parameter: &Parameter, value: &Json) -> Result<Option<Opened>, ToolError> {
    let value = Opened::of(&parameter.argument, value)?;
    let is_left_out = matches!(value, Opened::Undefined) && !parameter.required;
    Ok((!is_left_out).then_some(value))
}
