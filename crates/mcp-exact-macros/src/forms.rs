//! Forms that a method asks for, as far as its body names their types: `cx.elicit::<Confirm>(…)`.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::Type;

/// Keywords of items: their names, and what they import, exist in the body alone.
const ITEM_KEYWORDS: [&str; 6] = ["enum", "mod", "struct", "type", "union", "use"];

/// Returns the types of the forms in the body of a method. A body with items of its own, whose types cannot be named elsewhere,
/// has none; nor has a type that names one of the `generics` of the impl block, or `Self`.
pub(crate) fn forms_of(body: TokenStream, generics: &[Ident]) -> Vec<Type> {
    let mut found = Found::default();
    found.search(body);
    if found.has_items {
        return Vec::new();
    }
    let is_named = |tokens: &TokenStream| !names_one_of(tokens.clone(), generics);
    let types = found.types.into_iter().filter(is_named);
    types
        .filter_map(|tokens| syn::parse2(tokens).ok())
        .collect()
}

/// What was found in the body of a method.
#[derive(Default)]
struct Found {
    /// Type arguments of `elicit`.
    types: Vec<TokenStream>,
    /// True if the body defines or imports items.
    has_items: bool,
}

impl Found {
    /// Searches tokens and those of their groups.
    fn search(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => self.search(group.stream()),
                TokenTree::Ident(ident) if ident == "elicit" => {
                    let is_next = |next: &TokenTree, mark| matches!(next, TokenTree::Punct(punct) if punct.as_char() == mark);
                    let mut marks = [':', ':', '<'].into_iter();
                    if marks.all(|mark| tokens.next_if(|next| is_next(next, mark)).is_some()) {
                        self.types.push(type_argument(&mut tokens));
                    }
                }
                TokenTree::Ident(ident) => {
                    self.has_items |= ITEM_KEYWORDS.iter().any(|keyword| ident == keyword);
                }
                _ => {}
            }
        }
    }
}

/// Returns the tokens up to the `>` that ends a type argument.
fn type_argument(tokens: &mut impl Iterator<Item = TokenTree>) -> TokenStream {
    let mut depth = 0;
    let is_inside = |token: &TokenTree| {
        if let TokenTree::Punct(punct) = token {
            match punct.as_char() {
                '<' => depth += 1,
                '>' if depth == 0 => return false,
                '>' => depth -= 1,
                _ => {}
            }
        }
        true
    };
    tokens.take_while(is_inside).collect()
}

/// Returns true if tokens name one of the identifiers, `Self` or a type that is to be inferred.
fn names_one_of(tokens: TokenStream, names: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "Self" || ident == "_" || names.contains(&ident),
        TokenTree::Group(group) => names_one_of(group.stream(), names),
        _ => false,
    })
}
