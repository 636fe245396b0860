/** A file of properties, the configuration of LockServiceCentral: `locker.dynamodb.tableName=my-locks`. */
import { InvalidArgumentError } from 'holdfast';

/** The beginnings of LockServiceCentral's settings. */
const PREFIXES = ['locker.', 'authentication.', 'jwt.', 'server.', 'spring.', 'management.', 'google.'];
/** The settings that have an effect here, or a note or a refusal of their own. */
const KNOWN =
  /^(?:LOCKER_|GOOGLE_CLOUD_PROJECT$|AUTHENTICATION_DISABLED$|JWT_(?:ISSUER|AUDIENCE|JWKS)$|SERVER_(?:PORT|ADDRESS|SSL_|SERVLET_)|SPRING_(?:PROFILES_ACTIVE$|CONFIG_|APPLICATION_JSON$)|MANAGEMENT_)/;

interface Properties {
  /** The values by the names of variables. */
  readonly values: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
}

/** `locker.dynamodb.table-name` is `LOCKER_DYNAMODB_TABLENAME`. Any other name stays as it is. */
export function environmentName(name: string): string {
  if (!PREFIXES.some((prefix) => name.toLowerCase().startsWith(prefix))) return name;
  return name.replaceAll('-', '').replaceAll('.', '_').toUpperCase();
}

export function propertiesIn(text: string): Properties {
  const values: Record<string, string> = {};
  const notes: string[] = [];
  for (const line of logicalLines(text)) {
    const [, name = '', value = ''] = /^((?:[^\\\s=:]|\\.)+)(?:\s*[=:]\s*|\s+|$)(.*)$/s.exec(line) ?? [];
    if (name === '') throw new InvalidArgumentError('The file of properties has a line without a name.');
    const variable = environmentName(unescaped(name));
    if (!KNOWN.test(variable)) {
      notes.push(`${unescaped(name)}: not used.`);
    } else if (/\$\{/.test(value)) {
      throw new InvalidArgumentError(
        `${unescaped(name)} refers to another value with \${…}, which is not replaced here. Write the value itself.`,
      );
    } else values[variable] = unescaped(value);
  }
  return { values, notes };
}

/** Drops comments and blank lines. A line that ends with an odd number of backslashes continues in the next. */
function logicalLines(text: string): string[] {
  const lines: string[] = [];
  let begun = '';
  for (const line of text.split(/\r\n?|\n/)) {
    const rest = line.trimStart();
    if (begun === '' && (rest === '' || /^[#!]/.test(rest))) continue;
    const [backslashes = ''] = /\\*$/.exec(rest) ?? [];
    const goesOn = backslashes.length % 2 === 1;
    begun += goesOn ? rest.slice(0, -1) : rest;
    if (goesOn) continue;
    lines.push(begun);
    begun = '';
  }
  return begun === '' ? lines : [...lines, begun];
}

const ESCAPES: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f' };

function unescaped(text: string): string {
  return text.replaceAll(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_all, code: string | undefined, letter = '') =>
    code === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
