/** URLs as they may be shown: without a password, also where it was not escaped and so stands in the wrong place. */

/** Says too little rather than too much. */
export function redact(url: string): string {
  const start = url.indexOf('//') === -1 ? 0 : url.indexOf('//') + 2;
  const [authority = ''] = url.slice(start).split(/[/?#]/, 1);
  const at = authority.includes('@') ? start + authority.lastIndexOf('@') : url.lastIndexOf('@');
  const colon = url.indexOf(':', start);
  const shown = at > start && colon !== -1 && colon < at ? `${url.slice(0, colon)}:***${url.slice(at)}` : url;
  return shown.replace(/([?&][^=&#]*(?:pass|pwd|secret|token)[^=&#]*=)[^&#]*/gi, '$1***');
}

/** Clients like to quote the URL that they were given. */
export function redactIn(message: string, url: string): string {
  return message.replaceAll(url, redact(url));
}
