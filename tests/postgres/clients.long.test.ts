import './clients.test.js';
