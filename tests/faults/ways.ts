/** Ways from a process to its server, and what may happen on them. */
import type { Random } from 'holdfast/testkit';
import { type ProxyTarget, startHttpFaults, startProxy } from 'holdfast-test-servers';

export interface Way extends ProxyTarget {
  /** Something goes wrong on it, until `pass`; what, in a word. */
  disturb(random: Random): string;
  pass(): void;
  stop(): Promise<void>;
}

export type OpenWay = (server: ProxyTarget) => Promise<Way>;

/** Connections that are cut, hang, lose answers or are slow. */
export async function tcpWay(server: ProxyTarget): Promise<Way> {
  const proxy = await startProxy(server);
  return Object.assign(proxy, {
    disturb(random: Random): string {
      const kind = random.pick(['cut', 'hang', 'loseReplies', 'delay'] as const);
      if (kind === 'delay') proxy.delay(random.between(50, 600));
      else proxy[kind]();
      return kind;
    },
  });
}

/** The same, and answers of a DynamoDB that is asked too much. */
export async function dynamodbWay(server: ProxyTarget): Promise<Way> {
  const http = await startHttpFaults(server);
  const tcp = await tcpWay(http);
  return {
    host: tcp.host,
    port: tcp.port,
    disturb(random) {
      const kind = random.pick(['connection', 'throttle', 'fail', 'loseReplies', 'delayRequests'] as const);
      if (kind === 'connection') return tcp.disturb(random);
      if (kind === 'delayRequests') http.delayRequests(random.between(50, 1_500));
      else http[kind]();
      return kind;
    },
    pass() {
      http.pass();
      tcp.pass();
    },
    async stop() {
      await tcp.stop();
      await http.stop();
    },
  };
}
