/** Legal names that some database may confuse with another name, a wildcard or a name of its own. */

/** The longest key that the engine sends: a namespace of 64 bytes, a slash, and a name of 512. */
const STORE_KEY_BYTES_MAX = 577;

const PLAIN =
  'a A aa a* a? a% a_ % * > a.b a.* a:b a::b a|b {a} [a] (a) $a #a a;b a--b -a --a a,b a=b a&b a+b a%20b';
const QUOTED = `a'b a''b a"b a\`b a\\b a\\\\b a/b a//b ../a ./a . .. / // \${a} \\n %s $1 :a @a ?`;
const LETTERS = 'ä ae ß ss ı i İ ﬀ ff Σ σ ς אבג あ ア 😀 😁 \u{10ffff} \uffee';
const WORDS = 'null undefined true 0 00 1e3 1000 __proto__ constructor toString';

export function awkwardKeys(base: string): readonly string[] {
  const names = [PLAIN, QUOTED, LETTERS, WORDS].flatMap((some) => some.split(' '));
  const left = STORE_KEY_BYTES_MAX - base.length;
  const long = ['x', 'y'].map((last) => 'x'.repeat(left - 1) + last);
  const wide = ['é', 'ee'].map((last) => 'é'.repeat(Math.floor(left / 2) - 1) + last);
  return [...names, 'a ', ' a', 'a b', 'a\u00a0b', ...long, ...wide].map((name) => base + name);
}
