#!/usr/bin/env node
import '../dist/printing/standard-streams.js';

await import('../dist/main.js');
