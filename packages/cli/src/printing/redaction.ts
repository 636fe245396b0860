/** Removes passwords from URLs, also an unescaped password, which is in the wrong place. */

/** Rather removes too much than too little. */
export function redact(url: string): string {
  const start = url.indexOf('//') === -1 ? 0 : url.indexOf('//') + 2;
  const [authority = ''] = url.slice(start).split(/[/?#]/, 1);
  const at = authority.includes('@') ? start + authority.lastIndexOf('@') : url.lastIndexOf('@');
  const colon = url.indexOf(':', start);
  return shownUpTo(url, { start, colon, at }).replace(
    /([?&][^=&#]*(?:pass|pwd|secret|token|api[-_]?key)[^=&#]*=)[^&#]*/gi,
    '$1***',
  );
}

function shownUpTo(url: string, { start, colon, at }: Record<'start' | 'colon' | 'at', number>): string {
  if (at <= start) return url;
  if (colon !== -1 && colon < at) return `${url.slice(0, colon)}:***${url.slice(at)}`;
  // A single word before the host is a token in NATS URLs, and an API key in those of a service: as secret as a password.
  return /^(?:nats|https?:)/i.test(url) ? `${url.slice(0, start)}***${url.slice(at)}` : url;
}

/** Database clients quote the URL in their messages. */
export function redactIn(message: string, url: string): string {
  return message.replaceAll(url, redact(url));
}
