/** Whether a part of a URL can be decoded. Parsers keep undecodable parts as they are, which may be another name. */
export function isEncoded(text: string): boolean {
  if (!text.includes('%')) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch (error) {
    if (error instanceof URIError) return false;
    throw error;
  }
}
