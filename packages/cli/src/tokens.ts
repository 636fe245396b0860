/**
 * Arguments cut into options and words, before anybody knows whether they make sense. Not by `parseArgs` of `node:util`:
 * from Node 22 on, loading that module makes a stderr pipe non-blocking for everybody who shares it.
 */

export type Token =
  | { readonly kind: 'positional'; readonly value: string }
  | {
      readonly kind: 'option';
      readonly name: string;
      /** As it was written. */
      readonly rawName: string;
      readonly value: string | undefined;
      /** Whether the value came with a `=`. */
      readonly inlineValue: boolean;
    };

interface Spec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
}

/** An option that takes a value takes the next argument, whatever that looks like. Only flags have short names. */
export function tokensOf(args: readonly string[], specs: Readonly<Record<string, Spec>>): readonly Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    if (arg === '-' || !arg.startsWith('-')) {
      tokens.push({ kind: 'positional', value: arg });
    } else if (arg.startsWith('--')) {
      const [, name = '', inline] = /^--([^=]*)(?:=(.*))?$/s.exec(arg) ?? [];
      const takesNext = inline === undefined && Object.hasOwn(specs, name) && specs[name]?.type === 'string';
      if (takesNext) at += 1;
      const value = takesNext ? args[at] : inline;
      tokens.push({ kind: 'option', name, rawName: `--${name}`, value, inlineValue: inline !== undefined });
    } else {
      for (const letter of arg.slice(1)) {
        const [name = letter] = Object.entries(specs).find(([, { short }]) => short === letter) ?? [];
        tokens.push({ kind: 'option', name, rawName: `-${letter}`, value: undefined, inlineValue: false });
      }
    }
  }
  return tokens;
}
