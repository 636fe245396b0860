/** Settings by the names of variables, as texts, flags and URLs. No message repeats a value, because some are secrets. */
import { InvalidArgumentError } from 'holdfast';
import { environmentName } from './properties.js';

export type Environment = Readonly<Record<string, string | undefined>>;

const YES = ['true', 'yes', 'on', '1'];
const NO = ['false', 'no', 'off', '0'];

/** Settings by the names of variables or properties. A blank value counts as not set. */
export class Settings {
  readonly notes: string[] = [];
  readonly #values = new Map<string, string>();

  constructor(environment: Environment) {
    for (const [name, value = ''] of Object.entries(environment)) {
      if (value.trim() !== '') this.#values.set(environmentName(name), value.trim());
    }
  }

  get(name: string): string | undefined {
    return this.#values.get(name);
  }

  flag(name: string): boolean {
    const word = this.get(name)?.toLowerCase() ?? 'false';
    if (YES.includes(word)) return true;
    if (NO.includes(word)) return false;
    throw new InvalidArgumentError(`${name} has to be true or false.`);
  }

  url(name: string): string | undefined {
    const text = this.get(name);
    if (text === undefined) return undefined;
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return text;
    throw new InvalidArgumentError(`${name} has to be an http: or https: URL, without user and password.`);
  }

  /** Names of set variables that match. */
  named(pattern: RegExp): string[] {
    return [...this.#values.keys()].filter((name) => pattern.test(name));
  }

  startingWith(prefix: string): string[] {
    return [...this.#values.keys()].filter((name) => name.startsWith(prefix));
  }
}
