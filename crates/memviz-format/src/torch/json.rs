//! The JSON form of a snapshot, which the page reads as well: the same dicts and lists, tuples as lists.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use super::document::{Document, Limits, Value};
use crate::FormatError;

/// Parses a JSON text. Depth is bounded by serde_json (128).
pub(super) fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Document<'a>, FormatError> {
    let mut document = Document::new(limits);
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    document.root = parser.deserialize_any(Builder(&mut document)).map_err(FormatError::Json)?;
    parser.end().map_err(FormatError::Json)?;
    Ok(document)
}

struct Builder<'d, 'a>(&'d mut Document<'a>);

/// serde_json adds line and column; the offset is not known here.
fn refused<E: Error>(error: FormatError) -> E {
    E::custom(error.to_string().trim_start_matches("byte 0: "))
}

impl<'de> DeserializeSeed<'de> for Builder<'_, 'de> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Builder<'_, 'de> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Unsigned(value), Value::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Value, E> {
        self.0.new_str(0, Cow::Borrowed(text)).map_err(refused)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.0.new_str(0, Cow::Owned(text.to_owned())).map_err(refused)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let list = self.0.new_list(0).map_err(refused)?;
        while let Some(item) = items.next_element_seed(Builder(self.0))? {
            self.0.charge(0, size_of::<Value>()).map_err(refused)?;
            self.0.append(list, [item]);
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let dict = self.0.new_dict(0).map_err(refused)?;
        while let Some(key) = pairs.next_key_seed(Builder(self.0))? {
            let value = pairs.next_value_seed(Builder(self.0))?;
            self.0.charge(0, 2 * size_of::<Value>()).map_err(refused)?;
            self.0.set(dict, [(key, value)]);
        }
        Ok(dict)
    }
}
