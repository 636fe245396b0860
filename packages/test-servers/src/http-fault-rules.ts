/** WhichCalls request meets which fault: the first rule that fits, as often as it was asked for. */

/** One request, as it came. */
export interface HttpCall {
  /** What `X-Amz-Target` asks for: `PutItem`. Empty where there is none. */
  readonly operation: string;
  readonly body: string;
}

export interface WhichCalls {
  /** How many requests meet it; without it, all until `pass`. */
  readonly times?: number;
  /** Only these: `PutItem`. */
  readonly operation?: string;
}

export interface ErrorAnswer {
  readonly status: number;
  /** What the SDK makes the name of the error. */
  readonly type: string;
  readonly message: string;
}

/** Stops one request, or its reply, until it is let go. */
export interface Gate {
  readonly arrived: Promise<HttpCall>;
  pass(call: HttpCall): Promise<void>;
  release(): void;
}

export type Fault =
  | { readonly kind: 'none' }
  | { readonly kind: 'refuse'; readonly answer: ErrorAnswer }
  | { readonly kind: 'lose request' }
  | { readonly kind: 'lose reply' }
  | { readonly kind: 'delay request'; readonly ms: number }
  | { readonly kind: 'delay reply'; readonly ms: number }
  | { readonly kind: 'hold request'; readonly gate: Gate }
  | { readonly kind: 'hold reply'; readonly gate: Gate };

export interface Rules {
  add(fault: Fault, which: WhichCalls): void;
  /** Uses up one time of the rule that fits. */
  take(call: HttpCall): Fault;
  /** Forgets all rules, and lets go whatever one of them holds, or would have held. */
  clear(): void;
}

export function makeGate(): Gate {
  let arrive: (call: HttpCall) => void = () => undefined;
  let release = (): void => undefined;
  const arrived = new Promise<HttpCall>((resolve) => {
    arrive = resolve;
  });
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return {
    arrived,
    pass: (call) => {
      arrive(call);
      return released;
    },
    release: () => release(),
  };
}

export function makeRules(): Rules {
  const rules: { readonly fault: Fault; readonly operation: string | undefined; left: number }[] = [];
  const gates = new Set<Gate>();
  return {
    add: (fault, { operation, times = Number.POSITIVE_INFINITY }) => {
      rules.push({ fault, operation, left: times });
      if ('gate' in fault) gates.add(fault.gate);
    },
    take: (call) => {
      const fits = rules.find(
        ({ operation, left }) => left > 0 && (operation ?? call.operation) === call.operation,
      );
      if (fits === undefined) return { kind: 'none' };
      fits.left -= 1;
      return fits.fault;
    },
    clear: () => {
      rules.length = 0;
      for (const gate of gates) gate.release();
      gates.clear();
    },
  };
}
