/** Rules for faults: the first rule that matches a request applies, as many times as it was given for. */

/** One request, as it arrived. */
export interface HttpCall {
  /** From the header `X-Amz-Target`, such as `PutItem`. Empty without that header. */
  readonly operation: string;
  readonly body: string;
}

export interface WhichCalls {
  /** How many requests it applies to. Default: all until `pass`. */
  readonly times?: number;
  /** Only this operation, such as `PutItem`. */
  readonly operation?: string;
}

export interface ErrorAnswer {
  readonly status: number;
  /** The SDK uses it as the error's name. */
  readonly type: string;
  readonly message: string;
}

/** Holds one request, or its reply, until it is released. */
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
  /** The fault for this request; counts as one use of the rule. */
  take(call: HttpCall): Fault;
  /** Removes all rules and releases every request that one of them holds. */
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
      const rule = rules.find(
        ({ operation, left }) => left > 0 && (operation ?? call.operation) === call.operation,
      );
      if (rule === undefined) return { kind: 'none' };
      rule.left -= 1;
      return rule.fault;
    },
    clear: () => {
      rules.length = 0;
      for (const gate of gates) gate.release();
      gates.clear();
    },
  };
}
