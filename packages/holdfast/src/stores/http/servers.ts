/** Which of the services is asked: the same one until it fails, then the next. */

export class Servers {
  readonly #urls: readonly string[];
  readonly #onLeft: (url: string) => void;
  #at = 0;

  /** `onLeft` is told of a service that is asked no more, or whose connections cannot be relied on. */
  constructor(urls: readonly string[], onLeft: (url: string) => void) {
    this.#urls = urls;
    this.#onLeft = onLeft;
  }

  get current(): string {
    return this.#urls[this.#at] as string;
  }

  get count(): number {
    return this.#urls.length;
  }

  /** It failed. Where another was chosen meanwhile, it was for the same reason. */
  leave(url: string): void {
    if (this.count === 1 || url !== this.current) return;
    this.#at = (this.#at + 1) % this.count;
    this.#onLeft(url);
  }

  /** It is there and says nothing: what else is open to it is as good as gone. */
  giveUp(url: string): void {
    if (this.count > 1 && url === this.current) this.leave(url);
    else this.#onLeft(url);
  }
}
