/** The simulation as a command: `npm run simulate -- --help`. Needs `npm run build`. */
import { simulate } from './dist/index.js';

process.exitCode = await simulate(process.argv.slice(2), process.stdout);
