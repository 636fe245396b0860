/** An outlet that keeps what is written. */
import type { Outlet } from '../src/printing/outlet.js';

export class TextOutlet implements Outlet {
  readonly isTTY: boolean;
  readonly rows = 0;
  readonly failure = null;
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

  async flushed(): Promise<void> {}
}
