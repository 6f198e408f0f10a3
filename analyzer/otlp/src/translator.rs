//! Points of metrics as samples: who was read, which interface, which quantity. What is not known is counted and named.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use roce_model::{Sample, SampleKind, SampleSource, Time};
use roce_switches::switch::interface::{Interface, counted};

use crate::meaning::{MetricMeaning, Place, Scale, meaning};

/// Attributes of one point or resource; further ones are not looked at.
pub(crate) const MAX_ATTRIBUTES: usize = 64;
/// Names of metrics without a meaning that are kept, each with its count; points of others are counted together.
const MAX_NAMES: usize = 64;
/// Bytes of such a name, of a node and of a queue that are kept.
const MAX_TEXT: usize = 128;
/// Texts that are kept for samples to share; all are forgotten when there are more.
const MAX_TEXTS: usize = 1 << 16;

/// Flag of a point without a value (`DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK`).
const NO_VALUE: u64 = 1;

/// Keys of the switch, the surest first: gnmic and Telegraf give the device that they read as `source`.
const NODES: [&str; 5] = [
    "source",
    "device",
    "net.host.name",
    "host.name",
    "service.instance.id",
];
/// Keys of an interface: Cumulus Linux's, gnmic's (`element_key` of the path), Telegraf's.
const INTERFACES: [&str; 6] = [
    "interface",
    "interface_name",
    "interface_interface-id",
    "interface_interface_id",
    "interface_id",
    "name",
];
/// Keys of a queue of OpenConfig. `name` is the interface's where nothing else is.
const QUEUES: [&str; 2] = ["queue_name", "name"];
/// Keys of a traffic class and of a priority group, in Cumulus Linux.
const CLASSES: [&str; 1] = ["tc"];
const GROUPS: [&str; 1] = ["pg"];
/// Keys of a switch priority: 0 to 7.
const PRIORITIES: [&str; 5] = [
    "sp",
    "switch_priority",
    "switch-priority_priority",
    "switch_priority_priority",
    "priority",
];

/// An attribute of a resource or a point.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: AttributeValue<'a>,
}

/// The value of an attribute.
#[derive(Clone, Copy)]
pub(crate) enum AttributeValue<'a> {
    Text(&'a str),
    Number(u64),
    /// A value of a kind that names nothing here.
    Other,
}

/// Numbers of points, by what became of them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PointTally {
    /// Points that became samples.
    pub taken: u64,
    /// Points of metrics whose names are not known, by name.
    pub unknown: BTreeMap<String, u64>,
    /// Points of further unknown names.
    pub more_unknown: u64,
    /// Histograms and summaries.
    pub distributions: u64,
    /// Points that name no switch.
    pub no_node: u64,
    /// Points that name no interface, queue or priority, or an interface that forwards nothing between hosts.
    pub no_place: u64,
    /// Points of a quantity whose unit differs between switches, and who state none.
    pub no_unit: u64,
    /// Points without a time or a value, and changes (delta temporality) of what is a count.
    pub no_value: u64,
    /// Points for whose samples the receiver has no room.
    pub no_room: u64,
}

impl PointTally {
    /// Numbers of points by outcome, each with its name in metrics.
    pub fn outcomes(&self) -> [(&'static str, u64); 8] {
        let unknown: u64 = self.unknown.values().sum();
        [
            ("taken", self.taken),
            ("unknown_name", unknown + self.more_unknown),
            ("distribution", self.distributions),
            ("no_node", self.no_node),
            ("no_place", self.no_place),
            ("no_unit", self.no_unit),
            ("no_value", self.no_value),
            ("no_room", self.no_room),
        ]
    }

    /// Adds the numbers of another one.
    pub fn add(&mut self, other: &Self) {
        self.taken += other.taken;
        self.more_unknown += other.more_unknown;
        self.distributions += other.distributions;
        self.no_node += other.no_node;
        self.no_place += other.no_place;
        self.no_unit += other.no_unit;
        self.no_value += other.no_value;
        self.no_room += other.no_room;
        for (name, count) in &other.unknown {
            self.add_unknown(name, *count);
        }
    }

    /// Counts points of a name without a meaning.
    fn add_unknown(&mut self, name: &str, count: u64) {
        if let Some(known) = self.unknown.get_mut(name) {
            *known += count;
        } else if self.unknown.len() < MAX_NAMES {
            self.unknown.insert(name.to_owned(), count);
        } else {
            self.more_unknown += count;
        }
    }

    /// Points that did not become samples.
    pub fn left_out(&self) -> u64 {
        self.outcomes()[1..].iter().map(|(_, count)| count).sum()
    }

    /// One sentence about the points that did not become samples; `None` where there are none.
    pub fn text(&self) -> Option<String> {
        let left_out = self.left_out();
        if left_out == 0 {
            return None;
        }
        let mut reasons = Vec::new();
        let mut add = |count: u64, reason: &str| {
            if count > 0 {
                reasons.push(format!("{count} {reason}"));
            }
        };
        let unknown: u64 = self.unknown.values().sum();
        if unknown + self.more_unknown > 0 {
            let names: Vec<&str> = self.unknown.keys().take(4).map(String::as_str).collect();
            let more = if self.unknown.len() > names.len() {
                ", ..."
            } else {
                ""
            };
            add(
                unknown + self.more_unknown,
                &format!("have names that are not known ({}{more})", names.join(", ")),
            );
        }
        add(self.distributions, "are histograms or summaries");
        add(self.no_node, "name no switch (source, device, host.name)");
        add(
            self.no_place,
            "name no port that is counted, no queue or no priority",
        );
        add(self.no_unit, "state no unit");
        add(self.no_value, "have no time, no value, or a change for a count");
        add(self.no_room, "found no room: there are too many series");
        Some(format!(
            "{left_out} of {} points became no samples: {}",
            left_out + self.taken,
            reasons.join("; ")
        ))
    }
}

/// The name of an interface, and the label of its kind.
type KnownInterface = (Arc<str>, &'static str);

/// The count of why a point became no sample.
type CountOfReason = fn(&mut PointTally) -> &mut u64;

/// The place and the quantity of points, one after the other.
#[derive(Default)]
pub struct Translator {
    tally: PointTally,
    /// The switch where nothing names one.
    default_node: Option<Arc<str>>,
    /// The switch of the resource.
    node: Option<Arc<str>>,
    metric: String,
    meaning: Option<MetricMeaning>,
    has_unit: bool,
    is_delta: bool,
    texts: HashMap<Box<str>, Arc<str>, foldhash::fast::RandomState>,
    /// Interfaces by their names in points; `None`: not counted.
    interfaces: HashMap<Box<str>, Option<KnownInterface>, foldhash::fast::RandomState>,
}

impl Translator {
    /// A translator. `default_node` is the switch of points that name none.
    pub fn new(default_node: Option<&str>) -> Self {
        Self {
            default_node: default_node.map(Into::into),
            ..Self::default()
        }
    }

    /// Numbers of points up to now.
    pub fn tally(&self) -> &PointTally {
        &self.tally
    }

    /// Numbers of points since the last call.
    pub fn take_tally(&mut self) -> PointTally {
        std::mem::take(&mut self.tally)
    }

    pub(crate) fn begin_resource(&mut self, attributes: &[Attribute<'_>]) {
        self.node = self.node_in(attributes).or_else(|| self.default_node.clone());
    }

    pub(crate) fn begin_metric(&mut self, name: &str, unit: &str) {
        name.clone_into(&mut self.metric);
        self.meaning = meaning(name);
        self.is_delta = false;
        self.has_unit = true;
        if let Some(MetricMeaning {
            scale: scale @ Scale::Stated(_),
            ..
        }) = &mut self.meaning
        {
            let factor = scale.of_unit(unit);
            self.has_unit = factor.is_some();
            *scale = Scale::Factor(factor.unwrap_or(1.0));
        }
    }

    pub(crate) fn set_delta(&mut self, is_delta: bool) {
        self.is_delta = is_delta;
    }

    pub(crate) fn skip_distribution(&mut self) {
        self.tally.distributions += 1;
    }

    /// Adds the sample of a point, or counts why there is none.
    pub(crate) fn point(
        &mut self,
        attributes: &[Attribute<'_>],
        time: u64,
        value: Option<f64>,
        flags: u64,
        samples: &mut Vec<Sample>,
    ) {
        let Some(meaning) = self.meaning.take() else {
            return self.count_unknown();
        };
        let outcome = self.sample(
            &meaning,
            attributes,
            time,
            value.filter(|_| flags & NO_VALUE == 0),
        );
        self.meaning = Some(meaning);
        match outcome {
            Ok(sample) => {
                self.tally.taken += 1;
                samples.push(sample);
            }
            Err(count) => *count(&mut self.tally) += 1,
        }
    }

    /// The sample of a point; an error is the count of its reason.
    fn sample(
        &mut self,
        meaning: &MetricMeaning,
        attributes: &[Attribute<'_>],
        time: u64,
        value: Option<f64>,
    ) -> Result<Sample, CountOfReason> {
        let is_count = meaning.counter.kind() == SampleKind::Cumulative;
        let value = value.filter(|value| value.is_finite() && !(self.is_delta && is_count));
        let (Some(value), true) = (value, time > 0) else {
            return Err(|tally| &mut tally.no_value);
        };
        if !self.has_unit {
            return Err(|tally| &mut tally.no_unit);
        }
        let own = attributes.iter().any(|pair| NODES[..2].contains(&pair.key));
        let node = if own {
            self.node_in(attributes)
        } else {
            self.node.clone()
        };
        let node = node.ok_or((|tally| &mut tally.no_node) as CountOfReason)?;
        let (object, kind, priority, queue) = self
            .place(meaning, attributes)
            .ok_or((|tally| &mut tally.no_place) as CountOfReason)?;
        let mut details: Vec<Cow<'static, str>> = Vec::with_capacity(2);
        details.push(kind.into());
        details.extend(meaning.detail.map(Cow::Borrowed));
        Ok(Sample {
            time: Time(time),
            source: SampleSource::Switch,
            node,
            object,
            counter: meaning.counter,
            priority,
            queue,
            details,
            value: meaning.scale.apply(value),
            bits: 64,
        })
    }

    /// The interface of a point with its kind, its priority and its queue.
    #[expect(clippy::type_complexity, reason = "parts of a sample that are known together")]
    fn place(
        &mut self,
        meaning: &MetricMeaning,
        attributes: &[Attribute<'_>],
    ) -> Option<(Arc<str>, &'static str, Option<u8>, Option<Arc<str>>)> {
        let named = match &meaning.object {
            Some(object) => Some(Cow::Borrowed(object.as_str())),
            None => text_of(attributes, &INTERFACES),
        };
        let (object, kind) = self.interface(&named?)?;
        let (mut priority, mut queue) = (None, None);
        let keys: &[&str] = match &meaning.place {
            Place::Interface => &[],
            Place::Priority(fixed) => {
                priority = Some(*fixed);
                &[]
            }
            Place::NamedQueue(name) => {
                queue = Some(self.shared(name));
                &[]
            }
            Place::SwitchPriority => {
                let text = text_of(attributes, &PRIORITIES)?;
                priority = Some(text.parse().ok().filter(|priority| *priority < 8)?);
                &[]
            }
            Place::Class => &CLASSES,
            Place::Group => &GROUPS,
            Place::Queue => &QUEUES,
        };
        if !keys.is_empty() {
            queue = Some(self.shared(&text_of(attributes, keys)?));
        }
        Some((object, kind, priority, queue))
    }

    fn interface(&mut self, name: &str) -> Option<KnownInterface> {
        if let Some(known) = self.interfaces.get(name) {
            return known.clone();
        }
        // In the documents of every system a name with a slash is that of a port: `et-0/0/0`, `ethernet-1/1`, `TenGigE0/0/0/1`.
        let of_others =
            || Interface::parse(name).filter(|found| name.contains('/') && found.kind.is_counted());
        let found = counted(name)
            .or_else(of_others)
            .map(|interface| (self.shared(&interface.name), interface.kind.label()));
        if self.interfaces.len() >= MAX_TEXTS {
            self.interfaces.clear();
        }
        if name.len() <= MAX_TEXT {
            self.interfaces.insert(name.into(), found.clone());
        }
        found
    }

    fn node_in(&mut self, attributes: &[Attribute<'_>]) -> Option<Arc<str>> {
        let name = text_of(attributes, &NODES)?;
        Some(self.shared(without_port(&name)))
    }

    /// One text for all samples that have it.
    fn shared(&mut self, text: &str) -> Arc<str> {
        let text = beginning(text);
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        if self.texts.len() >= MAX_TEXTS {
            self.texts.clear();
        }
        self.texts.insert(text.into(), Arc::clone(&shared));
        shared
    }

    fn count_unknown(&mut self) {
        let name = roce_model::text::clean(beginning(&self.metric));
        self.tally.add_unknown(&name, 1);
    }
}

/// Text of the first of these keys that an attribute has.
fn text_of<'a>(attributes: &[Attribute<'a>], keys: &[&str]) -> Option<Cow<'a, str>> {
    keys.iter().find_map(|key| {
        let found = attributes.iter().find(|pair| pair.key == *key)?;
        match found.value {
            AttributeValue::Text(text) if !text.is_empty() => Some(Cow::Borrowed(text)),
            AttributeValue::Number(number) => Some(Cow::Owned(number.to_string())),
            _ => None,
        }
    })
}

/// The first bytes of a text, as many as are kept.
fn beginning(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_TEXT);
    &text[..end]
}

/// A target of gNMI without its port: `leaf1:57400`, `[2001:db8::1]:9339`.
fn without_port(name: &str) -> &str {
    if let Some(rest) = name.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match name.split_once(':') {
        Some((host, port)) if !host.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => name,
    }
}
