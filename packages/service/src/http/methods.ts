/** Tells a path that is not there from a method that does not work on it. */
import type { FastifyInstance } from 'fastify';

export class Methods {
  readonly #routes: { readonly pattern: RegExp; readonly method: string }[] = [];

  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method }) => {
      const pattern = new RegExp(`^${url.split('/').map(segment).join('/')}/?$`);
      for (const name of [method].flat()) this.#routes.push({ pattern, method: name });
    });
  }

  /** The methods that work on this path, without its query. */
  allowedOn(url: string): readonly string[] {
    const path = url.split('?')[0] ?? url;
    const allowed = this.#routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    return [...new Set(allowed)].sort();
  }
}

function segment(text: string): string {
  if (text === '*') return '.*';
  return text.startsWith(':') ? '[^/]+' : text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
