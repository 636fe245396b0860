/** The members of an interface or a class, with their texts. Knows the compiler's layout: members are indented by four. */
import { type Declaration, docOf } from '../declarations.js';

export interface Member {
  /** Without `readonly`, which all of them are, and without the semicolon. */
  readonly signature: string;
  readonly doc: string;
}

export function membersOf({ commented, text }: Declaration): { head: string; members: readonly Member[] } {
  const [, head = '', body] = /^([^{]*?) ?\{\n([\s\S]*)\n\}$/.exec(commented) ?? [];
  if (body === undefined || !/^(?:export )?(?:declare )?(?:abstract )?(?:interface|class) /.test(text)) {
    return { head: '', members: [] };
  }
  const members: { signature: string; doc: string }[] = [];
  let doc = '';
  let comment: string | null = null;
  for (const line of body.split('\n')) {
    if (comment !== null || /^ {4}\/\*\*/.test(line)) {
      comment = `${comment ?? ''}${line}\n`;
      if (!line.includes('*/')) continue;
      doc = docOf(comment.trim());
      comment = null;
    } else if (/^ {4}[^\s})\]|&]/.test(line)) {
      members.push({ signature: line.trim(), doc });
      doc = '';
    } else {
      const last = members.at(-1);
      if (last) last.signature += ` ${line.trim()}`;
    }
  }
  return { head, members: members.map((member) => ({ ...member, signature: clean(member.signature) })) };
}

const clean = (signature: string): string => signature.replace(/^readonly /, '').replace(/;$/, '');
