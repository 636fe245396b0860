/**
 * The connection that every NATS contender gets: one of @nats-io/transport-node, as `openStore` makes it, which is to say
 * without the stack that the client otherwise takes down with every request. Round trips are counted where the client
 * sends: a request is one, and so is what is published with a subject for the answer. Without that it is none.
 */
import { connect } from '@nats-io/transport-node';

let roundTrips = 0;

/** @param {string} url */
export async function openNats(url) {
  const connection = await openNatsApart(url);
  const request = connection.request.bind(connection);
  const publish = connection.publish.bind(connection);
  let asking = false;
  connection.request = (...given) => {
    roundTrips += 1;
    asking = true;
    const answer = request(...given);
    asking = false;
    return answer;
  };
  connection.publish = (...given) => {
    // What `request` itself publishes is counted already.
    if (!asking && given[2]?.reply) roundTrips += 1;
    publish(...given);
  };
  return connection;
}

/** For the holder whom the waiters stand against: what it asks is not theirs. @param {string} url */
export function openNatsApart(url) {
  return connect({ servers: url, noAsyncTraces: true });
}

export function natsRoundTrips() {
  return roundTrips;
}

/**
 * @param {import('@nats-io/transport-node').NatsConnection} connection
 * @param {string} subject @param {object} [question]
 */
export async function askJetstream(connection, subject, question) {
  const payload = question === undefined ? '' : JSON.stringify(question);
  const message = await connection.request(`$JS.API.${subject}`, payload);
  /** @type {{ error?: { description: string }, streams?: string[] | null }} */
  const answer = message.json();
  if (answer.error) throw new Error(`JetStream refuses ${subject}: ${answer.error.description}`);
  return answer;
}
