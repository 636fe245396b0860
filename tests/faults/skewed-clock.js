/** Loaded before everything else of a process: its wall clock is off by CLOCK_OFF_MS. The monotonic one is right. */
const offMs = Number(process.env.CLOCK_OFF_MS);
const TrueDate = Date;
const { timeOrigin } = performance;

globalThis.Date = /** @type {DateConstructor} */ (
  new Proxy(TrueDate, {
    construct: (target, args, made) =>
      Reflect.construct(target, args.length === 0 ? [TrueDate.now() + offMs] : args, made),
    get: (target, name, receiver) =>
      name === 'now' ? () => TrueDate.now() + offMs : Reflect.get(target, name, receiver),
  })
);
Object.defineProperty(performance, 'timeOrigin', { get: () => timeOrigin + offMs });
