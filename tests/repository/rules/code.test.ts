import { describe, expect, it } from 'vitest';
import { codeOf, importsOf } from '../code.js';

describe('the scanner behind the rules', () => {
  it('blanks comments and strings, and keeps lines', () => {
    expect(codeOf("a('b'); // c\n/* d\n e */ f")).toBe("a(' ');     \n    \n      f");
  });

  it('keeps the code inside templates', () => {
    const open = '$' + '{';
    expect(codeOf(`\`x ${open}a({ b: \`y ${open}c}\` })} z\` + d`)).toBe(
      `\`  ${open}a({ b: \`  ${open}c}\` })}  \` + d`,
    );
  });

  it('is not led astray by quotes inside regular expressions, nor by divisions', () => {
    expect(codeOf('x = /[\'"]/.test(y); z')).toBe('x =      .test(y); z'.replace('     ', ' '.repeat(6)));
    expect(codeOf("(a / b) / c; 'd'")).toBe("(a / b) / c; ' '");
  });

  it('finds every kind of import, and none in comments and strings', () => {
    const source = `
      import 'a'; import b from "b"; import { type C } from './c.js';
      export * from 'd'; export type { E } from 'e'; await import('f'); require('g');
      // import 'h'
      text("import 'i'", \`from 'j'\`);
      Array.from('k');`;
    expect(importsOf(source)).toEqual(['a', 'b', './c.js', 'd', 'e', 'f', 'g']);
  });
});
