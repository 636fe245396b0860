/** Changed certificates while the service runs: new connections get the new one, without a restart. */
import { Server } from 'node:https';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { after, type Cancel } from '../clock.js';

export interface Tls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Called from time to time: a new pair, or null. An error is logged, and the old pair stays. */
  changed?(): Tls | null;
}

const LOOK_MS = 1_000;

export function followCertificate(app: FastifyInstance, tls: Tls, log: Logger): void {
  let cancel: Cancel = () => undefined;
  const look = (): void => {
    cancel = after(LOOK_MS, look);
    try {
      const pair = tls.changed?.();
      if (!pair || !(app.server instanceof Server)) return;
      app.server.setSecureContext({ cert: pair.cert, key: pair.key });
      log.info('the certificate has changed: new connections get the new one');
    } catch (error) {
      // One of the two files may be written already, and the other not yet.
      log.error({ error: String(error) }, 'the new certificate cannot be used: the old one stays');
    }
  };
  app.addHook('onListen', (done) => {
    look();
    done();
  });
  app.addHook('onClose', (_app, done) => {
    cancel();
    done();
  });
}
