//! Imports between the files of a crate, read from the sources, without a compiler.
//!
//! An import is a path through `crate::`, `super::` or `self::`, or through a module that the file has or imports. It leads to the file in
//! which the name is defined: re-exports are followed. Tests are left out. Only paths are read; a method of a type that was never named is
//! not seen.
//!
//! `syn` reads the sources; attributes and macros are read as the words in them. Names are resolved here: syn resolves none, and cargo-modules
//! is a program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemMod, ItemUse, MetaList, UseTree};

/// Re-exports that are followed for one name, at most: two files can re-export each other.
const MAX_REEXPORTS: usize = 16;

/// A crate's files and their imports; names are paths below `src`.
pub(crate) struct Modules {
    files: Vec<String>,
    imports: Vec<BTreeSet<usize>>,
}

impl Modules {
    /// Reads the crate in `dir`.
    pub(crate) fn read(dir: &Path) -> Self {
        let mut tree = Tree::default();
        let sources = dir.join("src");
        for root in ["lib.rs", "main.rs"] {
            if sources.join(root).is_file() {
                let node = tree.add(None, root.to_owned());
                let below = sources.clone();
                tree.parse(node, &sources, &below, root);
            }
        }
        let imports = tree.imports();
        Self {
            files: tree.files,
            imports,
        }
    }

    /// Each import: from which file to which.
    pub(crate) fn imports(&self) -> impl Iterator<Item = (&str, &str)> {
        let name = |file: usize| self.files[file].as_str();
        let all = self.imports.iter().enumerate();
        all.flat_map(move |(from, to)| to.iter().map(move |to| (name(from), name(*to))))
    }

    /// The circles: files that import each other, directly or over others.
    pub(crate) fn circles(&self) -> Vec<BTreeSet<&str>> {
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|file| self.reached(file)).collect();
        let mut circles = BTreeSet::new();
        for file in 0..self.files.len() {
            let circle: BTreeSet<&str> = reached[file]
                .iter()
                .filter(|other| reached[**other].contains(&file))
                .map(|other| self.files[*other].as_str())
                .collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }

    /// The files to which the imports of `file` lead.
    fn reached(&self, file: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut next = vec![file];
        while let Some(file) = next.pop() {
            next.extend(self.imports[file].iter().filter(|to| reached.insert(**to)));
        }
        reached
    }
}

/// A path, segment by segment.
type Names = Vec<String>;

/// A module, in a file of its own or within one.
#[derive(Default)]
struct Node {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Names that `use` introduces, with their paths.
    uses: BTreeMap<String, Names>,
    /// Modules from which `use` takes everything.
    globs: Vec<Names>,
    /// Paths elsewhere than in a `use`, or inside of one.
    paths: Vec<Names>,
    /// Names defined here.
    defined: BTreeSet<String>,
}

#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    files: Vec<String>,
    /// Files of macros, which are in no module.
    macros: BTreeMap<String, usize>,
}

/// Target of a path: a module, or a definition in one.
#[derive(Clone, Copy)]
enum PathTarget {
    Module(usize),
    Item(usize),
}

impl Tree {
    fn add(&mut self, parent: Option<usize>, file: String) -> usize {
        self.files.push(file);
        self.nodes.push(Node {
            file: self.files.len() - 1,
            parent,
            ..Node::default()
        });
        self.nodes.len() - 1
    }

    /// Reads a file into `node`; files of its children are in `below`.
    fn parse(&mut self, node: usize, sources: &Path, below: &Path, file: &str) {
        let text = std::fs::read_to_string(sources.join(file)).unwrap();
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut reader = FileReader {
            tree: self,
            node,
            sources,
            below: below.to_owned(),
        };
        reader.visit_file(&parsed);
    }

    /// The file of a child module, if it is there: what has another path is for other features.
    fn child(&mut self, node: usize, name: String, sources: &Path, below: &Path) {
        let candidates = [below.join(format!("{name}.rs")), below.join(&name).join("mod.rs")];
        let Some(path) = candidates.into_iter().find(|path| path.is_file()) else {
            return;
        };
        let file = path.strip_prefix(sources).unwrap().to_str().unwrap().to_owned();
        let child = self.add(Some(node), file.clone());
        self.nodes[node].children.insert(name.clone(), child);
        let below: PathBuf = below.join(name);
        self.parse(child, sources, &below, &file);
    }

    /// Takes note of a tree of imports.
    fn used(&mut self, node: usize, before: &[String], tree: &UseTree) {
        let with = |name: &dyn ToString| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.used(node, &with(&path.ident), &path.tree),
            UseTree::Name(name) if name.ident == "self" => {
                self.named(node, before.last().cloned().unwrap_or_default(), before.to_vec());
            }
            UseTree::Name(name) => self.named(node, name.ident.to_string(), with(&name.ident)),
            UseTree::Rename(renamed) if renamed.ident == "self" => {
                self.named(node, renamed.rename.to_string(), before.to_vec());
            }
            UseTree::Rename(renamed) => self.named(node, renamed.rename.to_string(), with(&renamed.ident)),
            UseTree::Glob(_) => {
                self.nodes[node].globs.push(before.to_vec());
                self.nodes[node].paths.push(before.to_vec());
            }
            UseTree::Group(group) => {
                for branch in &group.items {
                    self.used(node, before, branch);
                }
            }
        }
    }

    fn named(&mut self, node: usize, name: String, path: Names) {
        self.nodes[node].paths.push(path.clone());
        self.nodes[node].uses.insert(name, path);
    }

    fn root(&self, mut node: usize) -> usize {
        while let Some(parent) = self.nodes[node].parent {
            node = parent;
        }
        node
    }

    /// Target of a path in `node`; `None`: another crate, or no path of modules.
    fn resolve(&self, node: usize, path: &[String], left: usize) -> Option<PathTarget> {
        let left = left.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let here = &self.nodes[node];
        match first.as_str() {
            "crate" => self.walk(self.root(node), rest, left),
            "self" => self.walk(node, rest, left),
            "super" => self.walk(here.parent?, rest, left),
            name => {
                if let Some(child) = here.children.get(name) {
                    return self.walk(*child, rest, left);
                }
                match self.resolve(node, here.uses.get(name).filter(|path| **path != [name])?, left)? {
                    PathTarget::Module(module) => self.walk(module, rest, left),
                    item @ PathTarget::Item(_) => Some(item),
                }
            }
        }
    }

    /// Target of the rest of a path, from a module on.
    fn walk(&self, node: usize, path: &[String], left: usize) -> Option<PathTarget> {
        let here = &self.nodes[node];
        let Some((first, rest)) = path.split_first() else {
            return Some(PathTarget::Module(node));
        };
        if first == "super" || here.children.contains_key(first) {
            return self.resolve(node, path, left);
        }
        if here.defined.contains(first) {
            return Some(PathTarget::Item(here.file));
        }
        if let Some(used) = here.uses.get(first) {
            return match self.resolve(node, used, left) {
                Some(PathTarget::Module(module)) => self.walk(module, rest, left),
                Some(item) => Some(item),
                // Another crate's: this file passes it on.
                None => Some(PathTarget::Item(here.file)),
            };
        }
        for glob in &here.globs {
            if let Some(PathTarget::Module(module)) = self.resolve(node, glob, left)
                && self.nodes[module].defined.contains(first)
            {
                return Some(PathTarget::Item(self.nodes[module].file));
            }
        }
        let place = self.macros.get(first).copied();
        Some(PathTarget::Item(place.unwrap_or(here.file)))
    }

    fn imports(&self) -> Vec<BTreeSet<usize>> {
        let mut imports = vec![BTreeSet::new(); self.files.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            for path in &node.paths {
                let to = match self.resolve(number, path, MAX_REEXPORTS) {
                    Some(PathTarget::Item(file)) => file,
                    // A name from a module that was imported by its own name is a path itself.
                    Some(PathTarget::Module(module)) if node.globs.contains(path) => self.nodes[module].file,
                    _ => continue,
                };
                if to != node.file {
                    imports[node.file].insert(to);
                }
            }
        }
        imports
    }
}

/// Reads one file into a module of the tree.
struct FileReader<'a> {
    tree: &'a mut Tree,
    node: usize,
    sources: &'a Path,
    /// Folder with the files of child modules.
    below: PathBuf,
}

impl FileReader<'_> {
    /// Takes note of the paths among words that the compiler reads later: those of attributes and macros.
    fn words(&mut self, tokens: TokenStream) {
        let mut path: Names = Vec::new();
        // Signs since the last name: two colons join names.
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.path(core::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                other => {
                    self.path(core::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.words(group.stream());
                    }
                }
            }
        }
        self.path(path);
    }

    /// Takes note of a path; a name alone is one that the file has or imports.
    fn path(&mut self, path: Names) {
        if path.len() > 1 {
            self.tree.nodes[self.node].paths.push(path);
        }
    }
}

impl<'ast> Visit<'ast> for FileReader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        let here = &mut self.tree.nodes[self.node];
        if let Some(name) = defined(item) {
            here.defined.insert(name);
        }
        if let Item::Macro(definition) = item
            && let Some(name) = &definition.ident
        {
            self.tree.macros.insert(name.to_string(), here.file);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let is_test = match item {
            ImplItem::Const(syn::ImplItemConst { attrs, .. })
            | ImplItem::Fn(syn::ImplItemFn { attrs, .. })
            | ImplItem::Type(syn::ImplItemType { attrs, .. }) => is_test(attrs),
            _ => false,
        };
        if !is_test {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let name = module.ident.to_string();
        let Some((_, items)) = &module.content else {
            return self.tree.child(self.node, name, self.sources, &self.below);
        };
        let file = self.tree.nodes[self.node].file;
        self.tree.nodes.push(Node {
            file,
            parent: Some(self.node),
            ..Node::default()
        });
        let inner = self.tree.nodes.len() - 1;
        self.tree.nodes[self.node].children.insert(name.clone(), inner);
        let outer = core::mem::replace(&mut self.node, inner);
        self.below.push(name);
        for item in items {
            self.visit_item(item);
        }
        self.below.pop();
        self.node = outer;
    }

    fn visit_item_use(&mut self, used: &'ast ItemUse) {
        self.tree.used(self.node, &[], &used.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.path(
                path.segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect(),
            );
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        visit::visit_path(self, &called.path);
        self.words(called.tokens.clone());
    }

    fn visit_meta_list(&mut self, list: &'ast MetaList) {
        self.words(list.tokens.clone());
    }
}

/// The attributes of an item.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(syn::ItemConst { attrs, .. })
        | Item::Enum(syn::ItemEnum { attrs, .. })
        | Item::Fn(syn::ItemFn { attrs, .. })
        | Item::Impl(syn::ItemImpl { attrs, .. })
        | Item::Macro(syn::ItemMacro { attrs, .. })
        | Item::Mod(syn::ItemMod { attrs, .. })
        | Item::Static(syn::ItemStatic { attrs, .. })
        | Item::Struct(syn::ItemStruct { attrs, .. })
        | Item::Trait(syn::ItemTrait { attrs, .. })
        | Item::Type(syn::ItemType { attrs, .. })
        | Item::Union(syn::ItemUnion { attrs, .. })
        | Item::Use(syn::ItemUse { attrs, .. }) => attrs,
        _ => &[],
    }
}

/// The name that an item defines in its module.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(syn::ItemConst { ident, .. })
        | Item::Enum(syn::ItemEnum { ident, .. })
        | Item::Static(syn::ItemStatic { ident, .. })
        | Item::Struct(syn::ItemStruct { ident, .. })
        | Item::Trait(syn::ItemTrait { ident, .. })
        | Item::Type(syn::ItemType { ident, .. })
        | Item::Union(syn::ItemUnion { ident, .. }) => ident,
        Item::Fn(function) => &function.sig.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// True if an item is for tests alone.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let mut words = Vec::new();
        if attribute.path().is_ident("cfg")
            && let syn::Meta::List(list) = &attribute.meta
        {
            names(list.tokens.clone(), &mut words);
        }
        words.iter().any(|word| word == "test") && !words.iter().any(|word| word == "not")
    })
}

/// All names among words.
fn names(tokens: TokenStream, found: &mut Names) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => found.push(name.to_string()),
            TokenTree::Group(group) => names(group.stream(), found),
            _ => {}
        }
    }
}

#[test]
fn imports_are_read_as_the_compiler_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join("src").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "lib.rs",
        "mod a;\nmod b;\npub use b::inner::Deep;\nmod c; // mod e;\nmod d;\n",
    );
    // Deep is defined in b/inner.rs; a string and a comment are no imports.
    write(
        "a.rs",
        "use crate::{Deep, c};\nfn f() -> &'static str { c::g('\"'); /* crate::b::Top */ \"crate::b::Top\" }\n",
    );
    write(
        "b.rs",
        "pub mod inner;\npub struct Top;\n#[cfg(test)]\nmod tests { use crate::a::f; }\n",
    );
    write("b/inner.rs", "use super::Top;\npub struct Deep(Top);\n");
    write(
        "c.rs",
        "pub fn g(_: char) { let _ = std::mem::size_of::<crate::b::Top>(); crate::a::f(); }\n",
    );
    // An attribute and a macro import, too.
    write(
        "d.rs",
        "#[error(\"{}\", text = crate::c::NAME)]\nstruct Error;\nfn f() { println!(\"{}\", [crate::a::f()].len()); }\n",
    );
    let modules = Modules::read(dir.path());
    let imports: Vec<_> = modules.imports().collect();
    assert_eq!(
        imports,
        [
            ("lib.rs", "b/inner.rs"),
            ("a.rs", "b/inner.rs"),
            ("a.rs", "c.rs"),
            ("b/inner.rs", "b.rs"),
            ("c.rs", "a.rs"),
            ("c.rs", "b.rs"),
            ("d.rs", "a.rs"),
            ("d.rs", "c.rs"),
        ]
    );
    assert_eq!(modules.circles(), [BTreeSet::from(["a.rs", "c.rs"])]);
}
