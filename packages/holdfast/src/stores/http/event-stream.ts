/** Parser of server-sent events, fed piece by piece. Reads `event` and `data`, and ignores the other fields. */

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** The service sends no longer event. */
const CHARS_MAX = 65_536;

export class EventStream {
  readonly #decoder = new TextDecoder();
  #rest = '';
  #event = '';
  #data: string[] = [];

  /** The events that these bytes complete. */
  push(bytes: Uint8Array): readonly ServerEvent[] {
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    const lines = text.split(/\r\n|\n|\r(?=.)/s);
    this.#rest = lines.pop() ?? '';
    const chars = this.#data.reduce((sum, { length }) => sum + length, this.#rest.length);
    if (chars > CHARS_MAX) throw new Error('The stream of wake-ups has an event without end.');
    return lines.flatMap((line) => this.#take(line) ?? []);
  }

  /** An empty line ends an event. */
  #take(line: string): ServerEvent | null {
    if (line === '') return this.#finish();
    const cut = line.indexOf(':');
    const name = cut === -1 ? line : line.slice(0, cut);
    const value = cut === -1 ? '' : line.slice(cut + 1).replace(/^ /, '');
    if (name === 'event') this.#event = value;
    if (name === 'data') this.#data.push(value);
    return null;
  }

  #finish(): ServerEvent | null {
    const event = this.#event === '' ? 'message' : this.#event;
    const data = this.#data;
    this.#event = '';
    this.#data = [];
    return data.length === 0 ? null : { event, data: data.join('\n') };
  }
}
