/** Reads server-sent events as they come, piece by piece: the part of the format that is used. */

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** A line that goes on for longer is no event of ours. */
const LETTERS_MAX = 65_536;

export class EventStream {
  readonly #decoder = new TextDecoder();
  #rest = '';
  #event = '';
  #data: string[] = [];

  /** The events that are complete with this. */
  push(bytes: Uint8Array): readonly ServerEvent[] {
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    const lines = text.split(/\r\n|\n|\r(?=.)/s);
    this.#rest = lines.pop() ?? '';
    const letters = this.#data.reduce((sum, { length }) => sum + length, this.#rest.length);
    if (letters > LETTERS_MAX) throw new Error('The stream of wake-ups has an event without end.');
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
