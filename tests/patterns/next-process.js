// @ts-check
/** A server process: `next-process.js ROUTE NAME COUNT` sends so many requests to the route, all at once. */
const [, , route = '', name = '', count = ''] = process.argv;
const { POST } = await import(route);
const entries = Array.from({ length: Number(count) }, (_, index) => `${name}-${index}`);
const answers = await Promise.all(
  entries.map((entry) =>
    POST(new Request('http://localhost/api/entries', { method: 'POST', body: JSON.stringify(entry) })),
  ),
);
console.log(JSON.stringify(answers.map(({ status }) => status)));
