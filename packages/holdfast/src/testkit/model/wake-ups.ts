/** Collects the wake-ups that a store sends, per key. */
import type { Stop, Store, Wake } from '../../protocol/index.js';
import { eventually } from '../pause.js';

export class WakeUps {
  private readonly heard = new Map<string, Wake[]>();
  private readonly stops: Stop[] = [];

  async listen(store: Store, inbox: string): Promise<void> {
    const stop = await store.listen?.(inbox, (key, why) => {
      const own = this.heard.get(key);
      if (own) own.push({ inbox, why });
      else this.heard.set(key, [{ inbox, why }]);
    });
    if (stop) this.stops.push(stop);
  }

  count(key: string): number {
    return this.heard.get(key)?.length ?? 0;
  }

  /** Waits until all of these have arrived after the first `from` wake-ups of the key. Duplicates are allowed. */
  async all(key: string, wakes: readonly Wake[], from: number, withinMs: number): Promise<void> {
    for (const wake of wakes) {
      const isSame = (hint: Wake): boolean => hint.inbox === wake.inbox && hint.why === wake.why;
      await eventually(`the hint "${wake.why}" to ${wake.inbox}`, withinMs, () =>
        (this.heard.get(key) ?? []).slice(from).some(isSame),
      );
    }
  }

  /** Wake-ups that should not have been sent. */
  strays(key: string, wakes: readonly Wake[]): readonly Wake[] {
    const meant = new Set(wakes.map(({ inbox, why }) => `${why} ${inbox}`));
    return (this.heard.get(key) ?? []).filter(({ inbox, why }) => !meant.has(`${why} ${inbox}`));
  }

  async stop(): Promise<void> {
    await Promise.all(this.stops.map((stop) => stop()));
  }
}
