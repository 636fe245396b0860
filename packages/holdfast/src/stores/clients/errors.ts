/**
 * Errors of client packages: what is wrong, what to do, and whether the command was certainly not executed. One table
 * for all stores, because Node's own codes come through every client.
 */
import { NotExecutedError, type Retry } from '../../protocol/index.js';
import { isError } from '../../protocol/is-error.js';
import { isObject } from '../../protocol/is-object.js';

/** Of a replica of Redis, or a server that was made one. */
const REPLICA = /^READONLY$/;
/** Of an SQL database: of a replica, or of a server, database or session that was set to read-only. */
const READ_ONLY =
  /^(25006|ER_OPTION_PREVENTS_STATEMENT|ER_READ_ONLY_MODE|ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION)$/;

const UNTRUSTED =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_\w+|CERT_\w+|ERR_TLS_CERT_ALTNAME_INVALID)$/;

/** Codes of Node, OpenSSL, PostgreSQL, MySQL, Redis, AWS and NATS, explained. `where` is the server's address. */
const EXPLANATIONS: readonly (readonly [pattern: RegExp, text: (where: string) => string])[] = [
  [
    /^ECONNREFUSED$/,
    (where) => `nothing listens at ${where}: is the server running, and is that its address?`,
  ],
  [
    /^(ENOTFOUND|EAI_AGAIN|EAI_NONAME)$/,
    (where) => `the host name of ${where} is not known: is it spelt right?`,
  ],
  [
    /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|CONNECT_TIMEOUT|ConnectionTimeoutError|UND_ERR_CONNECT_TIMEOUT)$/,
    (where) => `${where} does not answer: is that its address, and does a firewall allow the connection?`,
  ],
  [
    /^(WRONGPASS|NOAUTH|28P01|28000|ER_ACCESS_DENIED_ERROR|AuthorizationError|UserAuthenticationExpiredError)$/,
    (where) =>
      `${where} refuses this user name and password: check them (in a URL with special characters escaped as %40)`,
  ],
  [/^NO_NODE$/, (where) => `no node answers at ${where}: is the cluster running, and are those its nodes?`],
  [/^NO_CLUSTER$/, (where) => `${where} is not a Redis Cluster: leave out +cluster in the URL`],
  [/^SILENT$/, (where) => `${where} is there but does not answer: does it hang, or is it overloaded?`],
  [
    /^(3D000|ER_BAD_DB_ERROR)$/,
    (where) => `the database does not exist at ${where}: create it, or name another`,
  ],
  [
    /^(NOPERM|42501|ER_DBACCESS_DENIED_ERROR|PermissionViolationError)$/,
    (where) => `this user may not do that at ${where}: see the permissions in the documentation of the store`,
  ],
  [
    /^(ECONNRESET|EPIPE|CONNECTION_CLOSED|CONNECTION_ENDED|57P01|PROTOCOL_CONNECTION_LOST|ER_SERVER_SHUTDOWN)$/,
    (where) => `the connection to ${where} broke: try again, and read the server's log if it happens again`,
  ],
  [
    /^(53300|ER_CON_COUNT_ERROR|ER_TOO_MANY_USER_CONNECTIONS)$/,
    (where) => `${where} has no connection left: raise max_connections, or use fewer`,
  ],
  [/^LOADING$/, (where) => `${where} is still loading its data: try again in a moment`],
  [
    /^OOM$/,
    (where) => `the memory of ${where} is full, so it cannot store locks: free some, or raise maxmemory`,
  ],
  [
    /^MISCONF$/,
    (where) => `${where} cannot write to its disk, so it cannot store locks: read its log, and make room`,
  ],
  [
    /^NOREPLICAS$/,
    (where) =>
      `${where} has too few replicas now, and cannot store locks until they are back (min-replicas-to-write)`,
  ],
  [REPLICA, (where) => `${where} is a replica, which cannot store locks: name the master`],
  [
    READ_ONLY,
    (where) =>
      `${where} is read-only and cannot store locks: it is a replica, or is set so, as some hosts do when the disk is full. Name the primary, or let it write`,
  ],
  [
    /^57014$/,
    (where) =>
      `${where} ended the statement, because it took too long (statement_timeout) or it was cancelled`,
  ],
  [/^57P03$/, (where) => `${where} is starting up or shutting down: try again in a moment`],
  [
    /^(ERR_SSL_WRONG_VERSION_NUMBER|EPROTO|NO_TLS)$/,
    (where) => `${where} does not speak TLS: leave it out of the URL (rediss, sslmode, nats+tls, https)`,
  ],
  [
    /^CredentialsProviderError$/,
    () =>
      'no AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give this ' +
      'machine a role; an emulator takes any, also from the URL: dynamodb://KEY:SECRET@REGION/TABLE',
  ],
  [
    /^(UnrecognizedClientException|InvalidSignatureException|IncompleteSignatureException|MissingAuthenticationTokenException|InvalidClientTokenId)$/,
    (where) => `${where} refuses these AWS credentials: are they right, and meant for it?`,
  ],
  [
    /^(ExpiredTokenException|ExpiredToken|RequestExpired)$/,
    () => 'the AWS credentials have expired: get new ones, as with "aws sso login"',
  ],
  [
    /^NO_REGION$/,
    () => 'no AWS region is known: name it in the URL, as in dynamodb://eu-west-1/TABLE, or set AWS_REGION',
  ],
  [
    /^(ProvisionedThroughputExceededException|ThrottlingException|RequestLimitExceeded|LimitExceededException)$/,
    (where) => `${where} is throttling: raise the table's capacity, or make it on-demand`,
  ],
  [
    /^NO_JETSTREAM$/,
    (where) => `${where} has no JetStream for this account: start nats-server with -js, or enable it there`,
  ],
  [
    UNTRUSTED,
    (where) =>
      `the certificate of ${where} is not trusted: name its authority in NODE_EXTRA_CA_CERTS, or by an option of the URL (sslrootcert, tlsca)`,
  ],
];

/**
 * Codes that only occur before a command is executed, and whether to ask again. A broken connection is not one of them:
 * a command sent over it may have been executed.
 */
const NOT_EXECUTED: readonly (readonly [pattern: RegExp, retry: Retry])[] = [
  // The server undid the statement.
  [/^(ER_LOCK_DEADLOCK|ER_LOCK_WAIT_TIMEOUT|57014)$/, 'at-once'],
  [
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EAI_NONAME|CONNECT_TIMEOUT|ConnectionTimeoutError|UND_ERR_CONNECT_TIMEOUT)$/,
    'while-waiting',
  ],
  [REPLICA, 'while-waiting'],
  [READ_ONLY, 'while-waiting'],
  [/^(OFFLINE|LOADING|MASTERDOWN|CLUSTERDOWN|OOM|MISCONF|NOREPLICAS|53\d{3}|57P03)$/, 'while-waiting'],
  [
    /^ER_(CON_COUNT_ERROR|TOO_MANY_USER_CONNECTIONS|USER_LIMIT_REACHED|UNKNOWN_COM_ERROR|GET_CONNECTION_TIMEOUT)$/,
    'while-waiting',
  ],
  [
    /^(WRONGPASS|NOAUTH|NOPERM|28P01|28000|3D000|AuthorizationError|UserAuthenticationExpiredError|NOT_QUERYABLE|NO_CLUSTER|NO_TLS|NO_REGION|ER_ACCESS_DENIED_ERROR|ER_DBACCESS_DENIED_ERROR|ER_BAD_DB_ERROR|ERR_SSL_WRONG_VERSION_NUMBER)$/,
    'never',
  ],
  [UNTRUSTED, 'never'],
  [/^CredentialsProviderError$/, 'while-waiting'],
];

/** Codes for messages of clients that give no code, or the wrong one. */
const CODES_BY_MESSAGE: readonly (readonly [pattern: RegExp, code: string])[] = [
  [/^(WRONGPASS|NOAUTH|NOPERM|LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|OOM|MISCONF|NOREPLICAS)\b/, '$1'],
  [/\bACL failure in script|The user executing the script can't/, 'NOPERM'],
  [/isn't (?:writeable|ready) and enableOfflineQueue|client is offline/i, 'OFFLINE'],
  [/is not queryable$/, 'NOT_QUERYABLE'],
  [
    /connect ETIMEDOUT|connection timeout|timeout expired|timeout exceeded when trying to connect|^timeout$/i,
    'CONNECT_TIMEOUT',
  ],
  [/did not establish a connection with the server/, 'CONNECT_TIMEOUT'],
  [
    /^Command timed out$|^Query read timeout$|\b(?:and is silent|but does not answer)$|exceeded the configured \d+ ms requestTimeout/,
    'SILENT',
  ],
  [/^NATS did not answer .*: timeout\.$/, 'SILENT'],
  [/^Region is missing$/, 'NO_REGION'],
  [/^jetstream is not enabled|\bJetStream not enabled|^no responders: '\$JS/i, 'NO_JETSTREAM'],
  [/invalid username-password pair|Client sent AUTH|no password (?:was )?(?:given|supplied)/i, 'WRONGPASS'],
  [/password must be a string/i, '28P01'],
  [
    /does not support (?:SSL|secure connection)|^server does not support 'tls'$|'tls'.*not available/i,
    'NO_TLS',
  ],
  [/cluster support disabled/i, 'NO_CLUSTER'],
];

/** Messages that say only that there is no connection. The reason why there is none helps more. */
const NOT_CONNECTED =
  /^NATS did not answer|^there is no connection to Redis now|isn't (?:writeable|ready)|Connection is closed|client is (?:offline|closed)|max retries per request|Socket closed|None of startup nodes/i;

/**
 * The error with an explanation. `connectionError`: why there is no connection; null where that is not known. `where`:
 * the server's address without a password. A `NotExecutedError` stays one: only a store knows what its client had sent.
 */
export function explain(error: unknown, connectionError: unknown, where: string): Error {
  const isCertain = error instanceof NotExecutedError;
  const thrown = isCertain ? (error.cause ?? error) : error;
  const message = isError(thrown) ? thrown.message : String(thrown);
  const why = connectionError !== null && NOT_CONNECTED.test(message) ? connectionError : thrown;
  const text = explanationOf(why, where);
  if (!isCertain) return new Error(text, { cause: error });
  const retry = error.retry === 'at-once' ? 'at-once' : (retryOf(why) ?? error.retry);
  return new NotExecutedError(text, retry, thrown);
}

/**
 * The error of a client as a `NotExecutedError`; null unless it only occurs before a command is executed.
 * `connectionError` as above.
 */
export function notExecuted(error: unknown, connectionError: unknown = null): NotExecutedError | null {
  if (error instanceof NotExecutedError) return error;
  const retry = retryOf(error);
  if (retry === null) return null;
  const why = connectionError ?? error;
  return new NotExecutedError(explanationOf(why, addressIn(why)), retryOf(why) ?? retry, error);
}

export function isReadOnly(error: unknown): boolean {
  return READ_ONLY.test(codeOf(error));
}

/** When to ask again; null when the command may have been executed. */
function retryOf(error: unknown): Retry | null {
  const code = codeOf(error);
  const isConnecting = isObject(error) && error.syscall === 'connect';
  return NOT_EXECUTED.find(([pattern]) => pattern.test(code))?.[1] ?? (isConnecting ? 'while-waiting' : null);
}

function addressIn(error: unknown): string {
  if (!isObject(error)) return 'the server';
  const { address, port, hostname, errors, cause } = error;
  if (typeof address === 'string') return typeof port === 'number' ? `${address}:${port}` : address;
  if (typeof hostname === 'string') return hostname;
  const inner = Array.isArray(errors) ? errors[0] : cause;
  return isObject(inner) ? addressIn(inner) : 'the server';
}

function explanationOf(error: unknown, where: string): string {
  const code = codeOf(error);
  const explanation = EXPLANATIONS.find(([pattern]) => pattern.test(code))?.[1];
  return explanation ? `${explanation(where)} (${messageOf(error)})` : `${where}: ${messageOf(error)}`;
}

const isAggregate = (error: Error): error is AggregateError =>
  'errors' in error && Array.isArray(error.errors);

/** Looks inside wrapping errors: one attempt per address of a host name, and the last error of a cluster's nodes. */
export function codeOf(error: unknown): string {
  if (!isError(error)) return '';
  // First: the AWS SDK gives one code to a connection that was not made and to a server that does not answer.
  for (const [pattern, code] of CODES_BY_MESSAGE) {
    const found = pattern.exec(error.message);
    if (found) return code.replace('$1', found[1] ?? '');
  }
  if ('code' in error && typeof error.code === 'string') return error.code;
  if (isAggregate(error)) return codeOf(error.errors[0]);
  if ('lastNodeError' in error) {
    const { lastNodeError: last } = error;
    return NOT_CONNECTED.test(messageOf(last)) ? 'NO_NODE' : codeOf(last);
  }
  return error.cause === undefined ? error.name : codeOf(error.cause);
}

export function messageOf(error: unknown): string {
  if (!isError(error)) return String(error);
  if (isAggregate(error) && error.message === '') return error.errors.map(messageOf).join('; ');
  // `fetch` gives the reason only as the cause.
  if (/^(?:fetch failed|terminated)$/.test(error.message) && error.cause) return messageOf(error.cause);
  const message = error.message || error.name;
  return 'lastNodeError' in error && error.lastNodeError
    ? `${message} ${messageOf(error.lastNodeError)}`
    : message;
}
