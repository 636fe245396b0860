/** The order of statements on a shared connection. */

/** Runs the queries of one connection one at a time, renewals first. */
export function oneAtATime<Q, R>(run: (query: Q) => Promise<R>): (query: Q, urgent?: boolean) => Promise<R> {
  const urgentOnes: (() => Promise<void>)[] = [];
  const others: (() => Promise<void>)[] = [];
  let busy = false;

  async function work(): Promise<void> {
    busy = true;
    for (let next = urgentOnes.shift() ?? others.shift(); next; next = urgentOnes.shift() ?? others.shift()) {
      await next();
    }
    busy = false;
  }

  return (query, urgent = false) =>
    new Promise<R>((resolve, reject) => {
      (urgent ? urgentOnes : others).push(() => run(query).then(resolve, reject));
      if (!busy) void work();
    });
}
