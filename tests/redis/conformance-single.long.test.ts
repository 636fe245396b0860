/** The model of the suite, with all its sequences. */
import './conformance-single.test.js';
