"""parameters"""
