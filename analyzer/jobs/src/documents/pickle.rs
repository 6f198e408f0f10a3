//! Pickles as data: opcodes of protocols 2 to 5 that build numbers, text, lists, tuples and dictionaries. Nothing is ever called. The
//! names that PyTorch's own pickler writes around its lists are known, and give what they would return; any other name is an error.
//!
//! Each opcode makes one value at most, and a value that is used twice is the same one: the memory is a multiple of the file. Whoever
//! reads the values counts its steps, since a value may hold itself.
//!
//! Source: CPython, `Lib/pickletools.py`; pytorch/pytorch, `torch/csrc/jit/serialization/pickler.cpp`.

mod value;

use std::cell::Cell;

use super::error::DocumentError;

/// Values of one pickle.
const MAX_VALUES: usize = 1 << 22;

/// Functions of PyTorch's pickler whose result is their first argument.
const KNOWN_NAMES: [(&str, &str); 6] = [
    ("torch.jit._pickle", "restore_type_tag"),
    ("torch.jit._pickle", "build_intlist"),
    ("torch.jit._pickle", "build_doublelist"),
    ("torch.jit._pickle", "build_boollist"),
    ("__torch__.torch.jit._pickle", "restore_type_tag"),
    ("collections", "OrderedDict"),
];

/// A value; places are those in [`Pickle::values`].
#[derive(Clone, Debug)]
enum Value<'a> {
    None,
    Bool(bool),
    Whole(i128),
    Number(f64),
    Text(&'a str),
    /// Bytes, sets, and numbers beyond 128 bits, which no dump needs.
    Other,
    List(Vec<u32>),
    Map(Vec<(u32, u32)>),
    /// A known name.
    Name,
}

/// The values of a pickle.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    values: Vec<Value<'a>>,
    /// Offset of the opcode that made each value.
    bytes: Vec<u32>,
    root: u32,
    /// Values that were looked at.
    steps: Cell<usize>,
}

/// The machine of a pickle while it is read.
struct Machine<'a, 'f> {
    input: &'a [u8],
    file: &'f str,
    at: usize,
    /// Offset of the opcode that is read.
    opcode_at: usize,
    values: Vec<Value<'a>>,
    bytes: Vec<u32>,
    stack: Vec<u32>,
    /// Heights of the stack at its marks.
    marks: Vec<usize>,
    memo: Vec<Option<u32>>,
}

impl<'a> Pickle<'a> {
    /// Reads the first pickle in `input`.
    pub(super) fn read(input: &'a [u8], file: &str) -> Result<Self, DocumentError> {
        let mut machine = Machine {
            input,
            file,
            at: 0,
            opcode_at: 0,
            values: Vec::new(),
            bytes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
        };
        while !machine.step()? {}
        let root = machine.pop()?;
        Ok(Self {
            values: machine.values,
            bytes: machine.bytes,
            root,
            steps: Cell::new(0),
        })
    }
}

impl<'a> Machine<'a, '_> {
    fn fail<T>(&self, reason: impl Into<String>) -> Result<T, DocumentError> {
        Err(DocumentError::at_byte(self.file, self.opcode_at, reason))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DocumentError> {
        let end = self.at.checked_add(length);
        let Some(taken) = end.and_then(|end| self.input.get(self.at..end)) else {
            return self.fail(format!(
                "the pickle ends within an opcode; expected {length} bytes more"
            ));
        };
        self.at += length;
        Ok(taken)
    }

    /// A number of some bytes, the lowest first.
    fn count(&mut self, bytes: usize) -> Result<usize, DocumentError> {
        let taken = self.take(bytes)?;
        let value = taken
            .iter()
            .rev()
            .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value).or_else(|_| self.fail("a length beyond the memory; expected less"))
    }

    /// Bytes behind their length, which takes `bytes` bytes itself.
    fn counted(&mut self, bytes: usize) -> Result<&'a [u8], DocumentError> {
        let length = self.count(bytes)?;
        self.take(length)
    }

    /// The text up to the end of the line.
    fn line(&mut self) -> Result<&'a str, DocumentError> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let end = rest.iter().take(1 << 10).position(|byte| *byte == b'\n');
        let text = end.and_then(|end| std::str::from_utf8(rest.get(..end)?).ok());
        let Some(text) = text else {
            return self.fail("expected a name of at most 1,024 bytes that ends its line");
        };
        self.at += text.len() + 1;
        Ok(text)
    }

    fn push(&mut self, value: Value<'a>) -> Result<(), DocumentError> {
        if self.values.len() >= MAX_VALUES {
            return self.fail(format!(
                "more than {MAX_VALUES} values; expected a dump with fewer"
            ));
        }
        self.stack
            .push(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        self.values.push(value);
        self.bytes.push(u32::try_from(self.opcode_at).unwrap_or(u32::MAX));
        Ok(())
    }

    fn pop(&mut self) -> Result<u32, DocumentError> {
        let floor = self.marks.last().copied().unwrap_or_default();
        if self.stack.len() <= floor {
            return self.fail("the stack is empty; expected a value on it");
        }
        self.stack
            .pop()
            .map_or_else(|| self.fail("the stack is empty; expected a value on it"), Ok)
    }

    /// Values above the last mark.
    fn marked(&mut self) -> Result<Vec<u32>, DocumentError> {
        match self.marks.pop() {
            Some(mark) => Ok(self.stack.split_off(mark.min(self.stack.len()))),
            None => self.fail("there is no mark on the stack; expected one"),
        }
    }

    fn tuple(&mut self, length: usize) -> Result<(), DocumentError> {
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Value::List(items))
    }

    fn append(&mut self, mut items: Vec<u32>) -> Result<(), DocumentError> {
        let list = self
            .stack
            .last()
            .and_then(|top| self.values.get_mut(*top as usize));
        match list {
            Some(Value::List(known)) => {
                known.append(&mut items);
                Ok(())
            }
            Some(Value::Other) => Ok(()),
            _ => self.fail("expected a list below the values that are appended"),
        }
    }

    fn set(&mut self, items: &[u32]) -> Result<(), DocumentError> {
        let map = self
            .stack
            .last()
            .and_then(|top| self.values.get_mut(*top as usize));
        let Some(Value::Map(known)) = map else {
            return self.fail("expected a dictionary below the values that are set");
        };
        let (pairs, rest) = items.as_chunks::<2>();
        known.extend(pairs.iter().map(|[key, value]| (*key, *value)));
        if rest.is_empty() {
            Ok(())
        } else {
            self.fail("a key has no value; expected pairs")
        }
    }

    fn remember(&mut self, place: usize) -> Result<(), DocumentError> {
        let Some(top) = self.stack.last().copied() else {
            return self.fail("the stack is empty; expected a value to remember");
        };
        // Writers number what they remember from 0, and remember no more than they have made.
        if place > self.values.len() {
            return self.fail("a number of the memo beyond the values; expected the next one");
        }
        if place >= self.memo.len() {
            self.memo.resize(place + 1, None);
        }
        self.memo[place] = Some(top);
        Ok(())
    }

    fn recall(&mut self, place: usize) -> Result<(), DocumentError> {
        let Some(value) = self.memo.get(place).copied().flatten() else {
            return self.fail(format!(
                "number {place} of the memo is not there; expected one that was put"
            ));
        };
        if self.stack.len() >= MAX_VALUES {
            return self.fail(format!(
                "more than {MAX_VALUES} values on the stack; expected fewer"
            ));
        }
        self.stack.push(value);
        Ok(())
    }

    fn text(&mut self, bytes: &'a [u8]) -> Result<(), DocumentError> {
        // Python writes lone surrogates, which are no text.
        let value = std::str::from_utf8(bytes).map_or(Value::Other, Value::Text);
        self.push(value)
    }

    fn long(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let value = match bytes.len() {
            0..=16 => {
                let sign = if negative { -1 } else { 0 };
                Value::Whole(
                    bytes
                        .iter()
                        .rev()
                        .fold(sign, |value: i128, byte| value << 8 | i128::from(*byte)),
                )
            }
            _ => Value::Other,
        };
        self.push(value)
    }

    fn known_name(&mut self, module: &str, name: &str) -> Result<(), DocumentError> {
        if KNOWN_NAMES.contains(&(module, name)) {
            return self.push(Value::Name);
        }
        let shown = super::text::name(&format!("{module}.{name}"));
        self.fail(format!(
            "the name {shown}; expected data alone, and none of it is called"
        ))
    }

    fn stack_name(&mut self) -> Result<(), DocumentError> {
        let (name, module) = (self.pop()?, self.pop()?);
        let text = |place: u32| match self.values.get(place as usize) {
            Some(Value::Text(text)) => *text,
            _ => "",
        };
        let (module, name) = (text(module), text(name));
        self.known_name(module, name)
    }

    /// A known name with its arguments: the first one is the result, and without one an empty dictionary.
    fn reduce(&mut self) -> Result<(), DocumentError> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let is_name = matches!(self.values.get(function as usize), Some(Value::Name));
        let first = match self.values.get(arguments as usize) {
            Some(Value::List(items)) if is_name => items.first().copied(),
            _ => return self.fail("expected a known name and a tuple of arguments"),
        };
        match first {
            Some(first) => {
                self.stack.push(first);
                Ok(())
            }
            None => self.push(Value::Map(Vec::new())),
        }
    }

    /// Reads the next opcode. True: it was the last one.
    fn step(&mut self) -> Result<bool, DocumentError> {
        self.opcode_at = self.at;
        let opcode = self.take(1)?[0];
        match opcode {
            0x80 => match self.take(1)?[0] {
                2..=5 => {}
                other => return self.fail(format!("protocol {other}; expected 2 to 5")),
            },
            // FRAME has the length of what follows; nothing depends on it.
            0x95 => drop(self.take(8)?),
            b'.' => return Ok(true),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => {
                self.pop()?;
            }
            b'1' => drop(self.marked()?),
            b'N' => self.push(Value::None)?,
            0x88 | 0x89 => self.push(Value::Bool(opcode == 0x88))?,
            b'J' | b'K' | b'M' => self.small(opcode)?,
            0x8a | 0x8b => {
                let bytes = self.counted(if opcode == 0x8a { 1 } else { 4 })?;
                self.long(bytes)?;
            }
            b'G' => {
                let bytes = self.take(8)?.first_chunk().copied().unwrap_or_default();
                self.push(Value::Number(f64::from_be_bytes(bytes)))?;
            }
            b'X' | 0x8c | 0x8d => {
                let bytes = self.counted(width(opcode))?;
                self.text(bytes)?;
            }
            b'B' | b'C' | b'T' | b'U' | 0x8e | 0x96 => {
                self.counted(width(opcode))?;
                self.push(Value::Other)?;
            }
            b']' | b')' => self.push(Value::List(Vec::new()))?,
            b'}' => self.push(Value::Map(Vec::new()))?,
            b'q' | b'r' => {
                let place = self.count(if opcode == b'q' { 1 } else { 4 })?;
                self.remember(place)?;
            }
            0x94 => self.remember(self.memo.len())?,
            b'h' | b'j' => {
                let place = self.count(if opcode == b'h' { 1 } else { 4 })?;
                self.recall(place)?;
            }
            other => self.compound(other)?,
        }
        Ok(false)
    }

    fn small(&mut self, opcode: u8) -> Result<(), DocumentError> {
        let value = match opcode {
            b'J' => i128::from(i32::from_le_bytes(
                self.take(4)?.first_chunk().copied().unwrap_or_default(),
            )),
            b'K' => i128::from(self.take(1)?[0]),
            _ => i128::from(u16::from_le_bytes(
                self.take(2)?.first_chunk().copied().unwrap_or_default(),
            )),
        };
        self.push(Value::Whole(value))
    }

    /// Opcodes that make a value of others.
    fn compound(&mut self, opcode: u8) -> Result<(), DocumentError> {
        match opcode {
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])
            }
            b'e' => {
                let items = self.marked()?;
                self.append(items)
            }
            b'l' | b't' => {
                let items = self.marked()?;
                self.push(Value::List(items))
            }
            b'd' => {
                let items = self.marked()?;
                self.push(Value::Map(Vec::new()))?;
                self.set(&items)
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])
            }
            b'u' => {
                let items = self.marked()?;
                self.set(&items)
            }
            0x85..=0x87 => self.tuple(usize::from(opcode - 0x84)),
            0x8f => self.push(Value::Other),
            0x90 => self.marked().map(drop),
            0x91 => {
                self.marked()?;
                self.push(Value::Other)
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.known_name(module, name)
            }
            0x93 => self.stack_name(),
            b'R' => self.reduce(),
            other => self.fail(format!("opcode {other:#04x}; expected one that builds data")),
        }
    }
}

/// Bytes of the length behind an opcode.
const fn width(opcode: u8) -> usize {
    match opcode {
        b'C' | b'U' | 0x8c => 1,
        0x8d | 0x8e | 0x96 => 8,
        _ => 4,
    }
}
