/**
 * Calls of the script. It is named by its hash; a server that does not know it (restarted, flushed, failed over) says
 * so before it does anything, and is sent the text. That is no retry: nothing had been executed.
 */
import { UnsupportedError } from '../../protocol/index.js';
import { notExecuted } from '../clients/errors.js';
import type { Connection } from './connection.js';
import { type Answers, answersOf } from './replies.js';
import { SCRIPT, SCRIPT_SHA } from './script.js';

/** Texts as in commands.ts, one a key. */
export type Call = <T>(
  keys: readonly string[],
  texts: readonly string[],
  decode: (answers: Answers) => T,
) => Promise<T>;

/** Keys are given without what the client itself puts before them. */
export function caller(connection: Connection): Call {
  return (keys, texts, decode) => {
    const understand = (reply: unknown) => decode(answersOf(reply, keys.length));
    return attempt(connection, 'evalsha', SCRIPT_SHA, keys, texts).then(understand, (error: unknown) => {
      if (!isSaid(error, 'NOSCRIPT')) throw inWords(error, connection);
      return connection.run('eval', SCRIPT, keys, texts).then(understand);
    });
  };
}

/** A client that throws has sent nothing of this call; other calls of the batch go on. */
function attempt(connection: Connection, ...call: Parameters<Connection['run']>): Promise<unknown> {
  const { gate } = connection;
  try {
    if (gate && !gate.isOpen) return gate.wait().then(() => connection.run(...call));
    return connection.run(...call);
  } catch (error) {
    return Promise.reject(error);
  }
}

function isSaid(error: unknown, word: string): boolean {
  return error instanceof Error && error.message.startsWith(word);
}

/** A server that sends one away has executed nothing either, and never will. */
function inWords(error: unknown, { isCluster }: Connection): unknown {
  if (isCluster || !(isSaid(error, 'MOVED') || isSaid(error, 'CROSSSLOT')))
    return notExecuted(error) ?? error;
  return new UnsupportedError(
    'This server is part of a Redis Cluster, and the client is for a single server. ' +
      'Use Cluster of ioredis, or createCluster of node-redis.',
    { cause: error },
  );
}
