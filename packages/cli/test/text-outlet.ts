/** An outlet that keeps what is written. */
import type { Outlet } from '../src/printing/outlet.js';

export class TextOutlet implements Outlet {
  readonly isTTY: boolean;
  readonly rows = 0;
  readonly failure = null;
  readonly inThread = false;
  /** One by one. */
  readonly written: string[] = [];

  constructor(isTTY = false) {
    this.isTTY = isTTY;
  }

  get text(): string {
    return this.written.join('');
  }

  get used(): boolean {
    return this.written.length > 0;
  }

  write(text: string | Uint8Array): void {
    this.written.push(text.toString());
  }

  send(text: string | Uint8Array, done: (error: Error | null) => void): void {
    this.write(text);
    done(null);
  }

  async flushed(): Promise<void> {}
}
